-- One small vector for each token of a chunk, for a reranker on this machine; kept only where it is configured.
-- A chunk without a row has none yet. form: how they are packed; rows of another form are made anew.

create table nw.token_vectors (
  chunk_id    bigint primary key references nw.note_chunk on delete cascade,
  audience_id int not null,
  form        smallint not null,
  vectors     bytea not null
);
-- They do not compress, and are read a few at a time.
alter table nw.token_vectors alter vectors set storage external;
grant select on nw.token_vectors to notewarden_reader;

do $d$ begin
  alter table nw.token_vectors enable row level security;
  alter table nw.token_vectors force row level security;
  execute 'create policy writer on nw.token_vectors to current_user using (true) with check (true)';
  execute $p$create policy reader on nw.token_vectors for select to notewarden_reader
    using (audience_id in (select unnest(nullif(current_setting('nw.ids', true), '')::int[])))$p$;
end $d$;
