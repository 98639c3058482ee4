-- name: put
insert into nw.request (kind, arguments) values (%(kind)s, %(arguments)s) returning request_id

-- name: ring
select pg_notify('notewarden_request', '')

-- name: listen
listen notewarden_request

-- name: take
-- The oldest request that nobody has taken up.
update nw.request set taken_at = clock_timestamp() where request_id = (
    select request_id from nw.request where taken_at is null and ended_at is null order by request_id limit 1 for update skip locked)
returning request_id, kind, arguments

-- name: waiting
-- The kinds that wait, as one look.
select distinct kind from nw.request where taken_at is null and ended_at is null

-- name: give_back
update nw.request set taken_at = null, progress = null where request_id = %(request_id)s and ended_at is null

-- name: take_over
-- What an indexer that ended had taken up and not finished. Only for the one indexer that runs.
update nw.request r set taken_at = null, progress = null
 where taken_at is not null and ended_at is null and (kind <> 'note' or not exists (
   select from nw.request o where o.kind = 'note' and o.taken_at is null and o.arguments ->> 'note_id' = r.arguments ->> 'note_id'))

-- name: tell
update nw.request set progress = %(progress)s where request_id = %(request_id)s and ended_at is null

-- name: finish
update nw.request set ended_at = clock_timestamp(), result = %(result)s, exit_code = %(exit_code)s
 where request_id = %(request_id)s and ended_at is null

-- name: look
select taken_at is not null, ended_at is not null, progress, result, exit_code from nw.request where request_id = %(request_id)s

-- name: daemon
-- The session that holds the daemon's lock, which says itself who it is.
select a.application_name, a.backend_start from pg_locks l join pg_stat_activity a using (pid)
 where l.locktype = 'advisory' and l.granted and l.objid = %(lock)s and l.classid = 0
   and l.database = (select oid from pg_database where datname = current_database())

-- name: name_session
select set_config('application_name', %(name)s, false)
