-- touching: what writes down which rows a fold touches, in the order in which it does
CREATE TEMP TABLE farandole_touched (place int GENERATED ALWAYS AS IDENTITY, relation text, key text);
CREATE FUNCTION farandole_touch() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  touched jsonb := CASE WHEN TG_OP = 'DELETE' THEN to_jsonb(OLD) ELSE to_jsonb(NEW) END;
BEGIN
  INSERT INTO pg_temp.farandole_touched (relation, key)
  SELECT TG_TABLE_NAME, string_agg(name || ' ' || coalesce(touched ->> name, 'null'), ', ' ORDER BY place)
  FROM unnest(TG_ARGV) WITH ORDINALITY AS named (name, place);
  RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;
