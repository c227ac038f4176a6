-- Vectors are in a file beside the catalog. Opening the catalog moves those that are still in it.
ALTER TABLE IF EXISTS vectors RENAME TO vectors_before;
ALTER TABLE IF EXISTS vectors_next RENAME TO vectors_next_before;
