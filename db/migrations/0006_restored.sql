-- A restored database serves nobody until each share was swept where the database now is: the dump may be
-- older than a permission that was taken away since.

alter table nw.share add column swept_in text not null default '';   -- the place in which swept_at was set

-- This database and no copy of it: the server, the database in it, the table itself. A restore makes the table
-- anew, a template the database, pg_upgrade the server. (A copy of the server's files is told by nothing.)
create function app.place() returns text
  language sql stable set search_path = pg_catalog, pg_temp as $f$
  select c.system_identifier || '/' || d.oid || '/' || 'nw.share'::regclass::oid
    from pg_control_system() c, pg_database d where d.datname = current_database() $f$;
revoke all on function app.place() from public;
grant execute on function app.place() to notewarden_reader;

-- Only an update counts: a restore copies rows in.
create function nw.sweep_here() returns trigger
  language plpgsql set search_path = pg_catalog, pg_temp as $f$
  begin
    new.swept_in := app.place();
    return new;
  end $f$;
create trigger sweep_here before update of swept_at on nw.share for each row execute function nw.sweep_here();

-- The decision as it was, and the place beside it.
alter function app.readable_ids() rename to decided_ids;
create function app.readable_ids() returns setof int
  language sql stable security definer set search_path = pg_catalog, nw, pg_temp rows 1000 as $f$
  select a.audience_id from app.decided_ids() d (audience_id) join audience a using (audience_id)
    join share s using (share_id), (select app.place() as here) p
   where s.swept_in = p.here $f$;
revoke all on function app.decided_ids() from public, notewarden_reader;
revoke all on function app.readable_ids() from public;
grant execute on function app.readable_ids() to notewarden_reader;
