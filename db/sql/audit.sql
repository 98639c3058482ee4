-- name: add
insert into nw.audit (actor, asker, action, subject, detail)
values (%(actor)s, %(asker)s, %(action)s, %(subject)s, %(detail)s)
