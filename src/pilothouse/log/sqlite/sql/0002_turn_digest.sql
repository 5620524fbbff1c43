-- What a client's request said, as a digest: another request under the same id is told apart. NULL for older ones.
ALTER TABLE turns ADD COLUMN digest TEXT;
