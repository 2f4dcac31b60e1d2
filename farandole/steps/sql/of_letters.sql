-- of_letters: the effects behind dead letters, and for how many seconds more somebody is at them; null: nobody is
SELECT letter.event_id AS letter, step.event_id, step.agent, step.name,
       CASE WHEN step.state = 'leased' AND step.lease_until > clock_timestamp()
            THEN extract(epoch FROM step.lease_until - clock_timestamp())::float END AS seconds
FROM event_log AS letter
JOIN step ON step.event_id = letter.causation_id AND step.agent = letter.body->>'agent'
WHERE letter.event_id = ANY (%s::uuid[]) AND step.run = 0 AND step.state IS NOT NULL
ORDER BY step.event_id, step.agent, step.name
