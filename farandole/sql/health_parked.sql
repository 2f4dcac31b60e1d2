-- health_parked: records that were set aside because they are no events, and wait for a person
SELECT count(*) AS count FROM parked WHERE discarded_at IS NULL
