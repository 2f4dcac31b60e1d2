-- troubles: what waits for a person, counted
SELECT (SELECT count(*) FROM parked WHERE discarded_at IS NULL) AS parked,
       (SELECT count(*) FROM projector_offset WHERE gap IS NOT NULL) AS gaps,
       (SELECT count(*) FROM conflict) AS conflicts,
       (SELECT count(*) FROM job_state WHERE status = 'blocked') AS blocked
