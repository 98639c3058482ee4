-- Run by the embedded server's bootstrap superuser notewarden_admin, who does nothing else.

-- name: is_done
-- Our mark on the database is the last thing that a bootstrap makes.
select coalesce((select shobj_description(oid, 'pg_database') = %(mark)s
                   from pg_database where datname = 'notewarden'), false)

-- name: create_roles
do $d$ begin
  if not exists (select from pg_roles where rolname = 'notewarden') then
    create role notewarden login;
  end if;
  if not exists (select from pg_roles where rolname = 'notewarden_reader') then
    create role notewarden_reader login;
  end if;
  revoke all on database postgres, template1 from public;
end $d$

-- name: has_database
select exists (select from pg_database where datname = 'notewarden')

-- name: create_database
create database notewarden owner notewarden

-- name: furnish_database
-- Run inside the database. Without TEMPORARY nobody can put a table of their own in front of ours.
do $d$ begin
  create extension if not exists vector schema public;
  alter extension vector update;
  execute format('revoke all on database %I from public', current_database());
  execute format('grant connect on database %I to notewarden_reader', current_database());
end $d$

-- name: leave_mark
comment on database notewarden is 'notewarden bootstrap 1'
