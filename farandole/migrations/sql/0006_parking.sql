-- What a person decides about parked records.
SELECT;
