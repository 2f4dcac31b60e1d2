-- projection_states: every projection that was ever folded, how it was defined then, and what suspended it
SELECT name, hash, error AS suspended FROM projection ORDER BY name
