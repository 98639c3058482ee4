-- name: ids
select nextval(pg_get_serial_sequence(%(table)s, %(column)s)) from generate_series(1, %(count)s)

-- name: terms
-- The ids of words, of new ones too.
with made as (
  insert into nw.term (term) select w from unnest(%(words)s::text[]) w where not exists (select from nw.term t where t.term = w)
  returning term, term_id)
select term, term_id from made
union all
select term, term_id from nw.term where term = any (%(words)s)

-- name: add_chunks
-- All rows of some chunks of one note. Each column is an array; heading is the literal of one.
with chunk as (
  insert into nw.note_chunk (chunk_id, generation_id, note_id, audience_id, seq, heading, first_line, last_line, start_byte,
                             end_byte, content, embed_key, length)
  overriding system value
  select x.id, %(generation_id)s, %(note_id)s, %(audience_id)s, x.seq, x.heading::text[], x.first_line, x.last_line, x.start,
         x.stop, x.content, x.embed_key, x.length
    from unnest(%(chunk_ids)s, %(seqs)s, %(headings)b::text[], %(first_lines)s, %(last_lines)s, %(starts)s, %(ends)s,
                %(contents)b::text[], %(embed_keys)b::bytea[], %(lengths)s)
      as x (id, seq, heading, first_line, last_line, start, stop, content, embed_key, length)),
vector as (
  insert into {vectors} (chunk_id, audience_id, embedding)
  select x.id, %(audience_id)s, x.embedding from unnest(%(chunk_ids)s, %(vectors)b::vector[]) as x (id, embedding)),
posting as (
  insert into nw.posting (term_id, chunk_id, audience_id, tf, length)
  select x.term_id, x.id, %(audience_id)s, x.tf, x.length
    from unnest(%(term_ids)s, %(in_chunks)s, %(tfs)s, %(in_lengths)s) as x (term_id, id, tf, length))
insert into nw.audience_size as z (generation_id, audience_id, n_chunks, sum_length)
select %(generation_id)s, %(audience_id)s, count(*), sum(x.length) from unnest(%(lengths)s) as x (length)
on conflict (generation_id, audience_id) do update
  set n_chunks = z.n_chunks + excluded.n_chunks, sum_length = z.sum_length + excluded.sum_length
