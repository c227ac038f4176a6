-- Vectors lie in a file beside the catalog. Those that lie here move there when the catalog is opened.
ALTER TABLE IF EXISTS vectors RENAME TO vectors_before;
ALTER TABLE IF EXISTS vectors_next RENAME TO vectors_next_before;
