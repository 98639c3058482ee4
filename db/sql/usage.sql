-- name: add
insert into nw.usage (asker, model, input_tokens, output_tokens, cost)
values (%(asker)s, %(model)s, %(input_tokens)s, %(output_tokens)s, %(cost)s)

-- name: spent
select person, everybody from app.spent(%(asker)s)
