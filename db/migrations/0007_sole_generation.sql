-- After a switch the rows of what served before stand until they are deleted: until then, too, a posting must be
-- asked for its generation.
create or replace function app.sole_generation() returns boolean
  language sql stable security definer set search_path = pg_catalog, nw, pg_temp as $f$
  select not exists (
    select from generation g
     where g.state <> 'serving' and exists (select from note_chunk c where c.generation_id = g.generation_id)) $f$;
