-- name: drop_runs
delete from nw.run where ended_at is not null and started_at < clock_timestamp() - %(age)s::interval

-- name: drop_requests
delete from nw.request where coalesce(ended_at, asked_at) < clock_timestamp() - %(age)s::interval
   and (ended_at is not null or kind = 'note')

-- name: drop_audit
delete from nw.audit where at < clock_timestamp() - %(age)s::interval

-- name: drop_usage
delete from nw.usage where at < clock_timestamp() - %(age)s::interval

-- name: tables
select c.relname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname = 'nw' and c.relkind = 'r' order by 1

-- name: vacuum
vacuum (analyze, skip_locked) {table}

-- name: invalid_indexes
-- Left by an index build that was interrupted: kept up to date, never used.
select c.relname::text from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace n on n.oid = c.relnamespace
 where n.nspname = 'nw' and not i.indisvalid order by 1

-- name: rebuild
reindex index concurrently {index}

-- name: broken_chunks
-- Notes whose chunks do not stand whole and in order in the serving generation.
with serving as (select generation_id from nw.generation where state = 'serving'),
     wrong as (select c.note_id from nw.note_chunk c, serving s where c.generation_id = s.generation_id
                group by c.note_id having count(*) <> max(c.seq) + 1 or min(c.seq) <> 0
               union select c.note_id from nw.note_chunk c join nw.note n using (note_id) where c.audience_id <> n.audience_id
               union select c.note_id from nw.posting p join nw.note_chunk c using (chunk_id) where p.audience_id <> c.audience_id
               union select c.note_id from nw.token_vectors t join nw.note_chunk c using (chunk_id) where t.audience_id <> c.audience_id)
update nw.note set stale = true where note_id in (select note_id from wrong) returning note_id

-- name: lost_chunks
-- Notes that hold text and no chunk of it.
update nw.note n set stale = true where n.size > 0 and not n.stale and not exists (
   select from nw.note_chunk c join nw.generation g using (generation_id) where c.note_id = n.note_id and g.state = 'serving')
returning note_id

-- name: lost_vectors
-- Notes with a chunk that no search by meaning can find, or that stands under another audience there.
update nw.note set stale = true where note_id in (
   select c.note_id from nw.note_chunk c left join {vectors} v using (chunk_id)
    where c.generation_id = %(generation_id)s and (v.chunk_id is null or v.audience_id <> c.audience_id))
returning note_id

-- name: orphans
-- Postings of chunks that are gone; the foreign key makes it none.
delete from nw.posting p where not exists (select from nw.note_chunk c where c.chunk_id = p.chunk_id) returning chunk_id

-- name: sizes
-- The counts that BM25 goes by, made again where they are wrong.
with counted as (select generation_id, audience_id, count(*)::int as n, sum(length)::bigint as total
                   from nw.note_chunk group by 1, 2),
     wrong as (select generation_id, audience_id, coalesce(c.n, 0) as n, coalesce(c.total, 0) as total
                 from counted c full join nw.audience_size z using (generation_id, audience_id)
                where c.n is distinct from z.n_chunks and (c.n is not null or z.n_chunks <> 0)
                   or c.n is not null and c.total is distinct from z.sum_length)
insert into nw.audience_size as z (generation_id, audience_id, n_chunks, sum_length)
select generation_id, audience_id, n, total from wrong
on conflict (generation_id, audience_id) do update set n_chunks = excluded.n_chunks, sum_length = excluded.sum_length
returning audience_id

-- name: serving
select generation_id from nw.generation where state = 'serving'
