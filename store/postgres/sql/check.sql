-- Whether commits wait for the disk.
SELECT current_setting('synchronous_commit')
