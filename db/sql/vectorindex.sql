-- name: chunks
select coalesce(sum(n_chunks), 0)::bigint from nw.audience_size where generation_id = %(generation_id)s

-- name: form
-- m and ef_construction, as given or by default; no row without a valid index.
select coalesce((select option_value::int from pg_options_to_table(c.reloptions) where option_name = 'm'), 16),
       coalesce((select option_value::int from pg_options_to_table(c.reloptions) where option_name = 'ef_construction'), 64)
  from pg_index i join pg_class c on c.oid = i.indexrelid where i.indexrelid = to_regclass(%(name)s) and i.indisvalid

-- name: memory
-- A graph that does not fit is built row by row on disk, many times slower.
select set_config('maintenance_work_mem', %(memory)s, true)

-- name: alone
-- Workers share the whole graph through /dev/shm, which in a container may be far smaller.
select set_config('max_parallel_maintenance_workers', '0', true)

-- name: build
create index {index} on {vectors} using hnsw (embedding {operators}) with (m = {m}, ef_construction = {ef_construction})

-- name: rename
alter index nw.{index} rename to {name}

-- name: drop
drop index if exists nw.{index}

-- name: last_check
select checked_at, chunks, samples, recall, by_index from nw.recall_check where generation_id = %(generation_id)s

-- name: serving
select generation_id, dimension from nw.generation where state = 'serving'

-- name: record
insert into nw.recall_check (generation_id, chunks, samples, recall, by_index)
values (%(generation_id)s, %(chunks)s, %(samples)s, %(recall)s, %(by_index)s)
on conflict (generation_id) do update set checked_at = clock_timestamp(), chunks = excluded.chunks, samples = excluded.samples,
  recall = excluded.recall, by_index = excluded.by_index

-- name: forget_check
delete from nw.recall_check where generation_id = %(generation_id)s

-- name: some_audiences
-- An asker of about so many of the chunks, by whole audiences.
with chosen as (select audience_id from nw.audience_size where generation_id = %(generation_id)s and random() < %(part)s)
select set_config('nw.ids', coalesce((select array_agg(audience_id) from chosen), '{}')::text, true),
       (select coalesce(sum(n_chunks), 0)::bigint from nw.audience_size
         where generation_id = %(generation_id)s and audience_id in (select audience_id from chosen))

-- name: some_vector
select embedding from {vectors} where chunk_id >= %(chunk_id)s order by chunk_id limit 1

-- name: bounds
select min(chunk_id), max(chunk_id) from {vectors}

-- name: plan
-- Which index an approximate search walks.
explain (format json, costs off)
