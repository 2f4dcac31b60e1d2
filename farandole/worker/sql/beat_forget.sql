-- beat_forget: workers that were not heard of for a day are no news any more
DELETE FROM worker WHERE beat_at < now() - interval '1 day'
