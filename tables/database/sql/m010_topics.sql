-- A short label of a memory's subject. Memories of older versions have none.
ALTER TABLE memories ADD COLUMN topic VARCHAR;
ALTER TABLE archive ADD COLUMN topic VARCHAR;
