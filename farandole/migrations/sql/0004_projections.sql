-- Projections: registered by hash, with their SQL, and built beside the live ones.
SELECT;
