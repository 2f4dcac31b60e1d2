-- What readers of jobs need.
SELECT;
