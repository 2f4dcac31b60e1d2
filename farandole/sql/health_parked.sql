-- health_parked: records that were set aside because they are no events
SELECT count(*) AS count FROM parked
