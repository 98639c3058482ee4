-- name: known
select key, acl_id from nw.acl where key = any (%(keys)s)

-- name: add
insert into nw.acl (key, server, model, role, status, reason, owner, raw, entries)
values (%(key)s, %(server)s, %(model)s, %(role)s, %(status)s, %(reason)s, %(owner)s, %(raw)s, %(entries)s)
on conflict (key) do nothing returning acl_id

-- name: add_clause
insert into nw.acl_clause (acl_id, n, allow, deny) values (%(acl_id)s, %(n)s, %(allow)s, %(deny)s)

-- name: add_principals
insert into nw.principal (sid, name, unresolvable, listed)
select s, n, u, l from unnest(%(sids)s::text[], %(names)s::text[], %(unresolvable)s::bool[], %(listed)s::bool[]) as x (s, n, u, l)
on conflict (sid) do update set name = excluded.name, unresolvable = excluded.unresolvable, listed = excluded.listed, seen_at = now()

-- name: principals
select sid, name, unresolvable, listed from nw.principal order by sid

-- name: roles
select acl_id, role from nw.acl where acl_id = any (%(acl_ids)s::int[])

-- name: lists
select l.acl_id, l.key, l.server, l.model, l.role, l.status, l.reason, l.owner, l.raw, l.entries,
       (select coalesce(json_agg(json_build_array(c.allow, c.deny) order by c.n), '[]') from nw.acl_clause c where c.acl_id = l.acl_id) as clauses
  from nw.acl l where l.acl_id = any (%(acl_ids)s::int[])

-- name: drop_unused
-- Lists that no share, audience or note names any more; a list is never edited, so none can come to life again.
delete from nw.acl l where not exists (select from nw.share s where l.acl_id = any (s.acl_ids))
   and not exists (select from nw.audience a where l.acl_id = any (a.acl_ids))
   and not exists (select from nw.note n where l.acl_id = any (n.own_acl_ids))
   and not exists (select from nw.narrowed r where l.acl_id = any (r.old || r.beside))
   and l.acl_id <> %(closed)s
