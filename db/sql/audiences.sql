-- name: find
select audience_id from nw.audience
 where share_id = %(share_id)s and folder = %(folder)s and acl_ids = %(acl_ids)s::int[] order by audience_id limit 1

-- name: add
insert into nw.audience (share_id, folder, acl_ids, readers)
values (%(share_id)s, %(folder)s, %(acl_ids)s::int[], (
  select coalesce(array_agg(distinct sid order by sid), '{}') from nw.acl_clause c join nw.acl l using (acl_id), unnest(c.allow) sid
   where c.acl_id = any (%(acl_ids)s::int[]) and l.role = 'note'))
returning audience_id

-- name: edit
update nw.audience set acl_ids = %(acl_ids)s::int[], readers = (
  select coalesce(array_agg(distinct sid order by sid), '{}') from nw.acl_clause c join nw.acl l using (acl_id), unnest(c.allow) sid
   where c.acl_id = any (%(acl_ids)s::int[]) and l.role = 'note')
 where audience_id = %(audience_id)s

-- name: of_share
select audience_id, folder, acl_ids from nw.audience where share_id = %(share_id)s

-- name: notes
select count(*) from nw.note where audience_id = %(audience_id)s

-- name: move_notes
update nw.note set audience_id = %(audience_id)s where note_id = any (%(note_ids)s::bigint[])

-- name: move_chunks
update nw.note_chunk set audience_id = %(audience_id)s where note_id = any (%(note_ids)s::bigint[])

-- name: move_postings
update nw.posting set audience_id = %(audience_id)s
 where chunk_id in (select chunk_id from nw.note_chunk where note_id = any (%(note_ids)s::bigint[]))

-- name: move_vectors
update {vectors} set audience_id = %(audience_id)s
 where chunk_id in (select chunk_id from nw.note_chunk where note_id = any (%(note_ids)s::bigint[]))

-- name: move_token_vectors
update nw.token_vectors set audience_id = %(audience_id)s
 where chunk_id in (select chunk_id from nw.note_chunk where note_id = any (%(note_ids)s::bigint[]))

-- name: resize
with kept as (
  select generation_id, audience_id, count(*)::int as n, sum(length)::bigint as total
    from nw.note_chunk where audience_id = any (%(audience_ids)s::int[]) group by 1, 2),
gone as (
  delete from nw.audience_size z where z.audience_id = any (%(audience_ids)s::int[])
     and not exists (select from kept k where k.generation_id = z.generation_id and k.audience_id = z.audience_id))
insert into nw.audience_size (generation_id, audience_id, n_chunks, sum_length) select generation_id, audience_id, n, total from kept
on conflict (generation_id, audience_id) do update set n_chunks = excluded.n_chunks, sum_length = excluded.sum_length

-- name: drop_empty
delete from nw.audience a where a.share_id = %(share_id)s
   and not exists (select from nw.note n where n.audience_id = a.audience_id)
