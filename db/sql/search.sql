-- name: begin
select app.begin(%(allow)s::text[], %(deny)s::text[], %(listed)s::text[])

-- name: narrow
select app.narrow(%(shares)s::text[], %(folders)s::bytea[])

-- name: serving
select generation_id, embedder, dimension from app.serving()

-- name: sizes
select coalesce(sum(n_chunks), 0)::bigint, coalesce(sum(sum_length), 0)::bigint
  from nw.audience_size where generation_id = %(generation_id)s and audience_id in (select unnest(app.ids()))

-- name: nearest_exact
-- "+ 0" keeps every index out of the order, so that all readable rows are compared.
select chunk_id, (embedding <=> %(vector)s) + 0 as distance
  from {vectors} where audience_id = any ((select app.ids())::int[])
 order by 2, 1 limit %(limit)s

-- name: term_ids
select term, term_id from app.term_ids(%(words)s::text[])

-- name: postings
-- One row a term, from the covering index alone: chunk (high), tf (15 bits) and length (16 bits) in one number.
-- Which audiences is the row policy's matter: to ask once more would double the cost of a common word. Where only
-- one generation has rows no chunk is looked at.
select term_id, array_agg((chunk_id << 31) | (tf::bigint << 16) | length::bigint)
  from nw.posting where term_id = any (%(term_ids)s::int[]) group by term_id

-- name: postings_of_chunks
-- For an asker of few chunks: straight to these, however common the word. Term by term, for in one condition the
-- planner would read all other terms of the chunks too.
select t, p.packed from unnest(%(term_ids)s::int[]) t cross join lateral (
  select array_agg((chunk_id << 31) | (tf::bigint << 16) | length::bigint) as packed
    from nw.posting where term_id = t and chunk_id = any (%(chunk_ids)s::bigint[])) p
 where p.packed is not null

-- name: postings_of_generation
select term_id, array_agg((p.chunk_id << 31) | (tf::bigint << 16) | p.length::bigint)
  from nw.posting p join nw.note_chunk c using (chunk_id)
 where term_id = any (%(term_ids)s::int[]) and c.generation_id = %(generation_id)s group by term_id

-- name: readable_chunks
select array_agg(chunk_id order by chunk_id) from nw.note_chunk
 where generation_id = %(generation_id)s and audience_id in (select unnest(app.ids()))

-- name: sole_generation
select app.sole_generation()

-- name: has_vector_index
select exists (select from pg_index i join pg_class c on c.oid = i.indexrelid join pg_am m on m.oid = c.relam
                where i.indrelid = to_regclass(%(name)s) and i.indisvalid and m.amname = 'hnsw')

-- name: tune_nearest
-- Iterative scans go on until enough readable rows are found; without "off" the planner prefers to sort a part.
select set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', %(ef_search)s::int::text, true),
       set_config('hnsw.max_scan_tuples', '40000', true), set_config('hnsw.scan_mem_multiplier', '4', true),
       set_config('enable_seqscan', 'off', true)

-- name: untune_nearest
select set_config('enable_seqscan', 'on', true)

-- name: nearest_by_index
-- "is true" keeps the sub-plan a filter over the index scan: joins, a plain IN and ANY lose the index in silence.
-- The scan's order is relaxed; "+ 0" keeps the sort from being taken for granted.
select chunk_id, distance from (
  select chunk_id, embedding <=> %(vector)s as distance from {vectors}
   where (audience_id in (select unnest(app.ids()))) is true
   order by embedding <=> %(vector)s limit %(fetch)s) found
 order by distance + 0, chunk_id limit %(limit)s

-- name: chunk_notes
select chunk_id, note_id, seq from nw.note_chunk
 where chunk_id = any (%(chunk_ids)s::bigint[]) and audience_id in (select unnest(app.ids()))

-- name: neighbours
-- A section that was cut for its length has the same heading trail in each of its chunks.
select c.chunk_id, n.chunk_id from nw.note_chunk c
  join nw.note_chunk n on n.generation_id = c.generation_id and n.note_id = c.note_id
                      and n.seq in (c.seq - 1, c.seq + 1) and n.heading = c.heading
 where c.chunk_id = any (%(chunk_ids)s::bigint[]) and c.audience_id in (select unnest(app.ids()))
   and n.audience_id in (select unnest(app.ids())) order by n.seq

-- name: all_chunks
select chunk_id, note_id from nw.note_chunk
 where generation_id = %(generation_id)s and audience_id in (select unnest(app.ids()))
 order by note_id, seq limit %(limit)s

-- name: passages
-- The last read of text decides again, from the token itself.
select c.chunk_id, c.note_id, c.seq, s.name as share, n.path, s.link, n.title, c.heading, c.first_line, c.last_line, c.content,
       n.modified_at, n.language, n.written_on, n.status
  from nw.note_chunk c join nw.note n using (note_id) join nw.share s on s.share_id = n.share_id
 where c.chunk_id = any (%(chunk_ids)s::bigint[])
   and c.audience_id in (select app.readable_among(
         array(select distinct audience_id from nw.note_chunk where chunk_id = any (%(chunk_ids)s::bigint[]))))

-- name: chunk_vectors
select chunk_id, embedding from {vectors} where chunk_id = any (%(chunk_ids)s::bigint[]) and audience_id in (select unnest(app.ids()))

-- name: notes
select n.note_id, s.name as share, n.path from nw.note n join nw.share s using (share_id)
 where n.audience_id in (select unnest(app.ids())) order by s.name, n.path

-- name: note_text
select s.name as share, n.path, n.modified_at, c.content, c.first_line, c.last_line
  from nw.note n join nw.share s using (share_id) join nw.note_chunk c using (note_id)
 where n.note_id = %(note_id)s and c.generation_id = %(generation_id)s and n.audience_id in (select app.readable_among(
         array(select audience_id from nw.note where note_id = %(note_id)s)))
 order by c.seq

-- name: as_of
select app.as_of()

-- name: too_old
select app.too_old()

-- name: shares
select name from nw.share order by name

-- name: bound
select app.bound()

-- name: nearest_among
select chunk_id, (embedding <=> %(vector)s) + 0 as distance
  from {vectors} where audience_id = any ((select app.ids())::int[]) and chunk_id = any (%(among)s)
 order by 2, 1 limit %(limit)s

-- name: matching
-- The readable chunks, of notes of those days, that hold every phrase and none of the words. White space counts as one space, case not.
-- Each text is folded once: "offset 0" and "materialized" keep the planner from doing it again for every word.
with phrase as materialized (
       select regexp_replace(lower(normalize(p, NFC)), '\s+', ' ', 'g') as folded from unnest(%(phrases)s::text[]) p),
     word as materialized (
       select ' ' || regexp_replace(lower(normalize(w, NFC)), '\W+', ' ', 'g') || ' ' as folded from unnest(%(without)s::text[]) w),
     text as (
       select chunk_id, note_id, seq,
              ' ' || regexp_replace(lower(normalize(content, NFC)), '\s+', ' ', 'g') || ' ' as spaced,
              ' ' || regexp_replace(lower(normalize(content, NFC)), '\W+', ' ', 'g') || ' ' as words
         from nw.note_chunk
        where generation_id = %(generation_id)s and audience_id in (select unnest(app.ids()))
          and (%(since)s::date is null and %(until)s::date is null
               or note_id in (select note_id from nw.note n
                               where coalesce(n.written_on, n.modified_at::date)
                                     between coalesce(%(since)s::date, '-infinity') and coalesce(%(until)s::date, 'infinity')))
       offset 0)
select chunk_id from text t
 where not exists (select from phrase where position(phrase.folded in t.spaced) = 0)
   and not exists (select from word where position(word.folded in t.words) > 0)
 order by note_id, seq

-- name: folders
select distinct folder from nw.audience where audience_id in (select unnest(app.ids()))

-- name: count_notes
select count(*) from nw.note where audience_id in (select unnest(app.ids()))

-- name: notes_at
select n.note_id, s.name as share, n.path from nw.note n join nw.share s using (share_id)
 where n.path = any (%(paths)s::bytea[]) and n.audience_id in (select unnest(app.ids())) order by s.name, n.path

-- name: note_head
select s.name as share, n.path, n.modified_at from nw.note n join nw.share s using (share_id)
 where n.note_id = %(note_id)s and n.audience_id in (select app.readable_among(
         array(select audience_id from nw.note where note_id = %(note_id)s)))
