-- Gates: a cap that a person set holds over the code's; claims find the paused batches at once.
ALTER TABLE limits ADD COLUMN by_hand integer;

ALTER TABLE schedules ADD COLUMN limits text NOT NULL DEFAULT '{}';

CREATE INDEX batches_paused ON batches (id) WHERE paused_at IS NOT NULL;
