-- release: what a person says came of an effect; nobody owns it any more, so that no late word of its worker counts
UPDATE step SET state = %(becomes)s, result = %(result)s, error = %(why)s, owner = NULL, lease_until = NULL,
                failure = NULL, failed_run = NULL, finished_at = clock_timestamp()
WHERE event_id = %(event_id)s AND agent = %(agent)s AND name = %(name)s AND run = 0
