-- Who made a rule: the name that the decision was signed with, the device if it was one, and the approval that was
-- decided. NULL for older ones.
ALTER TABLE rules ADD COLUMN made_by TEXT;
ALTER TABLE rules ADD COLUMN device_id TEXT;
ALTER TABLE rules ADD COLUMN approval_id TEXT;
