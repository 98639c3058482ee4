-- What fails: apart from attempts, how often a version of a note failed for good; and runs that got nothing done.

alter table nw.ledger add column permanent int not null default 0;      -- failures of this version that more tries do not cure
alter table nw.generation add column fruitless int not null default 0;  -- runs in a row that asked the model and got no vector

-- When a generation stopped serving: readings that began before may still look for its table.
alter table nw.generation add column retired_at timestamptz;
