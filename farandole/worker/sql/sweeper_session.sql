-- sweeper_session: bounds for one that hangs or is frozen, whose locks would keep its waits asleep; a lost mark costs a wake
SELECT set_config('statement_timeout', '30s', false), set_config('idle_in_transaction_session_timeout', '15s', false),
       set_config('synchronous_commit', 'off', false)
