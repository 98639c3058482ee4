-- name: lock
select pg_advisory_lock(%(key)s)

-- name: unlock
select pg_advisory_unlock(%(key)s)

-- name: has_versions
select to_regclass('nw.schema_version') is not null

-- name: versions
select version, checksum from nw.schema_version order by version

-- name: prepare
create schema if not exists nw;
create table if not exists nw.schema_version (
  version    int primary key,
  name       text not null,
  checksum   bytea not null check (octet_length(checksum) = 32),
  applied_at timestamptz not null default now()
);
grant usage on schema nw to notewarden_reader;
grant select on nw.schema_version to notewarden_reader;

-- name: record
insert into nw.schema_version (version, name, checksum) values (%(version)s, %(name)s, %(checksum)s)

-- name: server_facts
select current_setting('server_version_num')::int, current_setting('server_encoding'),
       (select extversion from pg_extension where extname = 'vector'),
       exists (select from pg_roles where rolname = 'notewarden_reader')

-- name: create_vector
create extension if not exists vector schema public

-- name: create_reader
create role notewarden_reader login

-- name: close_database
-- Without TEMPORARY a role cannot put a table of its own in front of ours. Only the database's owner may say so.
do $d$ begin
  if exists (select from pg_database where datname = current_database() and pg_has_role(datdba, 'usage')) then
    execute format('revoke temporary on database %I from public', current_database());
    execute format('grant connect on database %I to notewarden_reader', current_database());
  end if;
end $d$
