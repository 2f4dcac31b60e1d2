-- beat: the owners of these leases live
UPDATE step SET lease_until = clock_timestamp() + %s * interval '1 second'
FROM (SELECT step.event_id, step.agent, step.name
      FROM step JOIN unnest(%s::uuid[], %s::text[], %s::text[], %s::text[]) AS given (event_id, agent, name, owner)
        USING (event_id, agent, name, owner)
      WHERE step.run = 0 AND step.state = 'leased'
      ORDER BY step.event_id, step.agent, step.name
      FOR UPDATE OF step) AS mine
WHERE step.event_id = mine.event_id AND step.agent = mine.agent AND step.name = mine.name AND step.run = 0
