-- touched: the rows of this transaction in the order in which they were touched
SELECT relation, key FROM pg_temp.farandole_touched ORDER BY place
