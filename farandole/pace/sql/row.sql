-- row: see that the model's row is there, for `turns` to lock
INSERT INTO model_pace (key, model) VALUES (%(key)s, %(model)s) ON CONFLICT DO NOTHING
