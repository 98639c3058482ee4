-- name: commit_lazily
set synchronous_commit = off

-- name: commit_now
set local synchronous_commit = on

-- name: begin
insert into nw.run (kind, daemon) values (%(kind)s, %(daemon)s) returning run_id, started_at

-- name: end
update nw.run set ended_at = clock_timestamp(), report = %(report)s, exit_code = %(exit_code)s, error = %(error)s
 where run_id = %(run_id)s

-- name: daemon_ever
select exists (select from nw.run where daemon)

-- name: last_sync
select max(started_at) from nw.run where kind = 'sync' and ended_at is not null

-- name: try_lock
select pg_try_advisory_lock(%(lock)s)

-- name: unlock
select pg_advisory_unlock(%(lock)s)

-- name: tell
update nw.run set report = %(report)s where run_id = %(run_id)s


-- name: current_daemon
-- What the daemon that runs tells of itself.
select report from nw.run where kind = 'daemon' and ended_at is null order by run_id desc limit 1

-- name: abandon
-- Runs whose process was killed never end by themselves.
update nw.run set ended_at = clock_timestamp(), error = 'killed', exit_code = 1 where ended_at is null and run_id <> %(run_id)s
