-- name: reader_role
-- What the reader must be, and each thing that would let it past row security.
select current_user::text, session_user::text, r.rolsuper, r.rolbypassrls,
       r.rolcreaterole or r.rolcreatedb or r.rolreplication as may_administer,
       exists (select from pg_auth_members m where m.member = r.oid) as is_member,
       exists (select from pg_shdepend d where d.refclassid = 'pg_authid'::regclass
                  and d.refobjid = r.oid and d.deptype = 'o')
         or exists (select from pg_database b where b.datdba = r.oid) as owns
  from pg_roles r where r.rolname = current_user

-- name: forget
-- A connection that is handed on carries nobody's token; the round trip also shows that it is alive.
select set_config('nw.allow', '', false), set_config('nw.deny', '', false), set_config('nw.ids', '', false), set_config('nw.listed', '', false)
