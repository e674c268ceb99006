alerts.acknowledged_at timestamp with time zone
alerts.acknowledged_by text COLLATE C
alerts.closed_at timestamp with time zone
alerts.closed_told_at timestamp with time zone
alerts.details json NOT NULL
alerts.id bigint NOT NULL IDENTITY
alerts.raised_told_at timestamp with time zone
alerts.rule text COLLATE C NOT NULL
alerts.severity text COLLATE C NOT NULL
alerts.silenced_by text COLLATE C
alerts.silenced_until timestamp with time zone
alerts.since timestamp with time zone NOT NULL
alerts.subject text COLLATE C NOT NULL
answers.actor text COLLATE C NOT NULL
answers.answer text
answers.at timestamp with time zone NOT NULL
answers.hash text NOT NULL
answers.key text COLLATE C NOT NULL
answers.what text NOT NULL
api_keys.created_at timestamp with time zone NOT NULL
api_keys.created_by text COLLATE C NOT NULL
api_keys.expires_at timestamp with time zone
api_keys.hash text COLLATE C NOT NULL
api_keys.id text COLLATE C NOT NULL
api_keys.label text COLLATE C NOT NULL
api_keys.person bigint NOT NULL
api_keys.replaced_by text COLLATE C
api_keys.revoked_at timestamp with time zone
api_keys.role text COLLATE C NOT NULL
api_keys.used_at timestamp with time zone
audit.actor text
audit.at timestamp with time zone NOT NULL
audit.details json
audit.id bigint NOT NULL IDENTITY
audit.subject text NOT NULL
audit.verb text NOT NULL
audit.xid xid8 NOT NULL DEFAULT pg_current_xact_id()
batch_pace.batch bigint NOT NULL
batch_pace.minute timestamp with time zone NOT NULL
batch_pace.n bigint NOT NULL
batches.created_at timestamp with time zone NOT NULL
batches.first_job bigint
batches.id bigint NOT NULL IDENTITY
batches.key text COLLATE C
batches.kind text COLLATE C NOT NULL
batches.last_job bigint
batches.name text COLLATE C NOT NULL
batches.paused_at timestamp with time zone
breakers.epoch integer
breakers.failures integer NOT NULL DEFAULT 0
breakers.job bigint
breakers.name text COLLATE C NOT NULL
breakers.probe_at timestamp with time zone
breakers.reason text
breakers.rest double precision NOT NULL
breakers.since timestamp with time zone
breakers.state text NOT NULL DEFAULT 'closed'::text
breakers.threshold integer NOT NULL
budgets.currency text COLLATE C NOT NULL
budgets.gate text COLLATE C NOT NULL
budgets.name text COLLATE C NOT NULL
budgets.nanos bigint NOT NULL
budgets.per text COLLATE C NOT NULL
budgets.scope text COLLATE C NOT NULL
budgets.shut text COLLATE C
budgets.shut_until timestamp with time zone
budgets.warned text COLLATE C
charges.amount bigint NOT NULL
charges.application text COLLATE C NOT NULL
charges.at timestamp with time zone NOT NULL
charges.batch bigint
charges.id bigint NOT NULL IDENTITY
charges.job bigint NOT NULL
charges.kind text COLLATE C NOT NULL
charges.model text COLLATE C NOT NULL
charges.provider text COLLATE C NOT NULL
charges.sort text COLLATE C NOT NULL
charges.unit text COLLATE C NOT NULL
costs.amount bigint NOT NULL
costs.model text COLLATE C NOT NULL
costs.name text COLLATE C NOT NULL
costs.period text COLLATE C NOT NULL
costs.provider text COLLATE C NOT NULL
costs.scope text COLLATE C NOT NULL
costs.sort text COLLATE C NOT NULL
costs.unit text COLLATE C NOT NULL
counts.batch bigint NOT NULL
counts.code text COLLATE C NOT NULL
counts.kind text COLLATE C NOT NULL
counts.n bigint NOT NULL
counts.state text COLLATE C NOT NULL
duties.boot text COLLATE C
duties.name text COLLATE C NOT NULL
duties.term bigint NOT NULL DEFAULT 0
events.actor text
events.at timestamp with time zone NOT NULL
events.details json
events.epoch integer
events.job bigint NOT NULL
events.seq integer NOT NULL
events.type text NOT NULL
events.xid xid8 NOT NULL DEFAULT pg_current_xact_id()
evidence.bytes bytea
evidence.codec text NOT NULL
evidence.place text
evidence.sha256 text NOT NULL
evidence.size bigint NOT NULL
evidence.stored_at timestamp with time zone
evidence.used_at timestamp with time zone NOT NULL DEFAULT '1970-01-01 00:00:00+00'::timestamp with time zone
exchange.actor text COLLATE C NOT NULL
exchange.brl_per_usd text COLLATE C NOT NULL
exchange.since timestamp with time zone NOT NULL
filling_jobs.filling bigint NOT NULL
filling_jobs.hash text COLLATE C
filling_jobs.key text COLLATE C
filling_jobs.kind text COLLATE C NOT NULL
filling_jobs.limits json
filling_jobs.payload json NOT NULL
filling_jobs.place bigint NOT NULL
filling_jobs.slice integer NOT NULL
fillings.batch bigint
fillings.id bigint NOT NULL IDENTITY
fillings.jobs bigint NOT NULL DEFAULT 0
fillings.key text COLLATE C NOT NULL
fillings.lease_until timestamp with time zone NOT NULL
fillings.owner text COLLATE C NOT NULL
fillings.submission json NOT NULL
hints.epoch integer NOT NULL
hints.hinted_at timestamp with time zone NOT NULL
hints.job bigint NOT NULL
hints.queue text COLLATE C NOT NULL
job_evidence.at timestamp with time zone NOT NULL
job_evidence.cut_from bigint
job_evidence.epoch integer NOT NULL
job_evidence.job bigint NOT NULL
job_evidence.media text NOT NULL
job_evidence.name text COLLATE C NOT NULL
job_evidence.sha256 text NOT NULL
jobs.aside text COLLATE C
jobs.batch bigint
jobs.cancel_at timestamp with time zone
jobs.checkpoint text
jobs.code text COLLATE C
jobs.correlation text
jobs.created_at timestamp with time zone NOT NULL
jobs.deadline timestamp with time zone
jobs.discarded_at timestamp with time zone
jobs.ended_at timestamp with time zone
jobs.epoch integer NOT NULL DEFAULT 0
jobs.failures integer NOT NULL DEFAULT 0
jobs.fresh_from integer NOT NULL DEFAULT 1
jobs.generation integer NOT NULL DEFAULT 1
jobs.id bigint NOT NULL IDENTITY
jobs.key text COLLATE C
jobs.kind text COLLATE C NOT NULL
jobs.limit_key text
jobs.lost integer NOT NULL DEFAULT 0
jobs.note text
jobs.payload json NOT NULL
jobs.payload_hash text
jobs.priority integer NOT NULL DEFAULT 0
jobs.progress double precision
jobs.progress_at timestamp with time zone
jobs.queue text COLLATE C NOT NULL
jobs.reason text
jobs.released integer NOT NULL DEFAULT 0
jobs.result json
jobs.run_at timestamp with time zone
jobs.runner text COLLATE C
jobs.seq integer NOT NULL DEFAULT 1
jobs.started_at timestamp with time zone
jobs.state text COLLATE C NOT NULL DEFAULT 'waiting'::text
jobs.traceparent text
jobs.turn bigint
jobs.version integer NOT NULL
kinds.application text COLLATE C NOT NULL
kinds.name text COLLATE C NOT NULL
kinds.queue text COLLATE C NOT NULL
knobs.changed_at timestamp with time zone NOT NULL
knobs.changed_by text COLLATE C NOT NULL
knobs.name text COLLATE C NOT NULL
knobs.value json NOT NULL
limits.by_hand integer
limits.cap integer NOT NULL
limits.key text COLLATE C NOT NULL
limits.used integer NOT NULL DEFAULT 0
meta.name text NOT NULL
meta.value text NOT NULL
pace.bucket integer NOT NULL
pace.code text COLLATE C NOT NULL
pace.kind text COLLATE C NOT NULL
pace.minute timestamp with time zone NOT NULL
pace.ms double precision NOT NULL
pace.n bigint NOT NULL
pace.state text COLLATE C NOT NULL
pauses.actor text NOT NULL
pauses.name text COLLATE C NOT NULL
pauses.scope text COLLATE C NOT NULL
pauses.since timestamp with time zone NOT NULL
pauses.why text
people.created_at timestamp with time zone NOT NULL
people.id bigint NOT NULL IDENTITY
people.name text COLLATE C NOT NULL
people.removed_at timestamp with time zone
people.role text COLLATE C NOT NULL
places_left.at timestamp with time zone NOT NULL
places_left.place text NOT NULL
pool_items.epoch integer
pool_items.failed_at timestamp with time zone
pool_items.failed_by text
pool_items.failed_from timestamp with time zone
pool_items.failures integer NOT NULL DEFAULT 0
pool_items.generation integer
pool_items.id bigint NOT NULL IDENTITY
pool_items.job bigint
pool_items.last_job bigint
pool_items.name text COLLATE C NOT NULL
pool_items.pool text COLLATE C NOT NULL
pool_items.ready_at timestamp with time zone
pool_items.reason text
pool_items.scope text
pool_items.score double precision NOT NULL DEFAULT 1
pool_items.state text NOT NULL DEFAULT 'on'::text
pool_items.used_at timestamp with time zone
pool_items.uses integer NOT NULL DEFAULT 0
pool_items.value json NOT NULL
pool_items.vendor text COLLATE C NOT NULL DEFAULT ''::text
pool_items.worked_at timestamp with time zone
pool_items.worked_by text
pools.cool_down double precision NOT NULL DEFAULT 0
pools.healthy integer NOT NULL DEFAULT 0
pools.name text COLLATE C NOT NULL
pools.off_after integer
pools.pick text NOT NULL
pools.use_cap integer
prices.actor text COLLATE C NOT NULL
prices.amount text COLLATE C NOT NULL
prices.currency text COLLATE C NOT NULL
prices.model text COLLATE C NOT NULL
prices.per bigint NOT NULL
prices.provider text COLLATE C NOT NULL
prices.since timestamp with time zone NOT NULL
prices.unit text COLLATE C NOT NULL
rates.adaptive integer NOT NULL DEFAULT 0
rates.at timestamp with time zone NOT NULL
rates.blocked integer NOT NULL DEFAULT 0
rates.bound double precision
rates.burst double precision NOT NULL
rates.ceiling double precision
rates.cuts integer NOT NULL DEFAULT 0
rates.key text COLLATE C NOT NULL
rates.looked_at timestamp with time zone
rates.passed integer NOT NULL DEFAULT 0
rates.rate double precision NOT NULL
rates.recorded double precision
rates.refused bigint NOT NULL DEFAULT 0
rates.refused_at timestamp with time zone
rates.tokens double precision NOT NULL
rates.usual double precision
refers.column_name text COLLATE C NOT NULL
refers.table_name text COLLATE C NOT NULL
refers.what text COLLATE C NOT NULL
retoma_migrations.applied_at timestamp with time zone NOT NULL
retoma_migrations.checksum text NOT NULL
retoma_migrations.name text NOT NULL
retoma_migrations.number integer NOT NULL
retoma_migrations.room text NOT NULL
reuse.at timestamp with time zone NOT NULL
reuse.cost json
reuse.hash text COLLATE C NOT NULL
reuse.job bigint NOT NULL
reuse.key text COLLATE C NOT NULL
reuse.key_hash text COLLATE C NOT NULL
reuse.kind text COLLATE C NOT NULL
reuse.step text COLLATE C NOT NULL
reuse.value json NOT NULL
reuse.version integer NOT NULL
runner_kinds.boot text COLLATE C NOT NULL
runner_kinds.event text COLLATE C NOT NULL
runner_kinds.kind text COLLATE C NOT NULL
runner_kinds.ms double precision NOT NULL
runner_kinds.n bigint NOT NULL
runner_totals.boot text COLLATE C NOT NULL
runner_totals.event text COLLATE C NOT NULL
runner_totals.ms double precision NOT NULL
runner_totals.n bigint NOT NULL
runners.beat_at timestamp with time zone NOT NULL
runners.boot text COLLATE C NOT NULL
runners.drain_at timestamp with time zone
runners.host text NOT NULL
runners.knows json NOT NULL
runners.lease_until timestamp with time zone NOT NULL
runners.name text COLLATE C NOT NULL
runners.pid integer NOT NULL
runners.pid_started text NOT NULL
runners.since timestamp with time zone NOT NULL
runners.slots integer NOT NULL
runners.state text COLLATE C NOT NULL
runners.trouble text
runners.version text NOT NULL
schedules.cron text NOT NULL
schedules.kind text COLLATE C NOT NULL
schedules.limits text NOT NULL DEFAULT '{}'::text
schedules.missed text NOT NULL
schedules.name text COLLATE C NOT NULL
schedules.next_at timestamp with time zone
schedules.paused_at timestamp with time zone
schedules.payload json NOT NULL
schedules.priority integer NOT NULL DEFAULT 0
schedules.queue text COLLATE C NOT NULL DEFAULT ''::text
schedules.timezone text NOT NULL
schedules.version integer NOT NULL DEFAULT 1
secrets.field text COLLATE C NOT NULL
secrets.key text COLLATE C
secrets.last4 text COLLATE C
secrets.owner text COLLATE C NOT NULL
secrets.ref text COLLATE C NOT NULL
secrets.row text COLLATE C NOT NULL
secrets.set_at timestamp with time zone NOT NULL
secrets.set_by text COLLATE C NOT NULL
sign_in_links.created_at timestamp with time zone NOT NULL
sign_in_links.expires_at timestamp with time zone NOT NULL
sign_in_links.hash text COLLATE C NOT NULL
sign_in_links.id text COLLATE C NOT NULL
sign_in_links.person bigint NOT NULL
sign_in_links.role text COLLATE C NOT NULL
sign_in_links.used_at timestamp with time zone
sign_in_sessions.agent text COLLATE C NOT NULL
sign_in_sessions.created_at timestamp with time zone NOT NULL
sign_in_sessions.ended_at timestamp with time zone
sign_in_sessions.expires_at timestamp with time zone NOT NULL
sign_in_sessions.hash text COLLATE C NOT NULL
sign_in_sessions.id text COLLATE C NOT NULL
sign_in_sessions.person bigint NOT NULL
sign_in_sessions.role text COLLATE C NOT NULL
sign_in_sessions.seen_at timestamp with time zone NOT NULL
steps.begun_at timestamp with time zone
steps.cost json
steps.epoch integer NOT NULL
steps.generation integer NOT NULL
steps.job bigint NOT NULL
steps.key text COLLATE C NOT NULL
steps.name text COLLATE C NOT NULL
steps.saved_at timestamp with time zone
steps.state text COLLATE C NOT NULL
steps.value json
steps.version integer NOT NULL
tallies.batch bigint
tallies.bucket integer
tallies.code text COLLATE C
tallies.event text
tallies.from_state text
tallies.id bigint NOT NULL IDENTITY
tallies.kind text COLLATE C NOT NULL
tallies.minute timestamp with time zone NOT NULL
tallies.ms double precision
tallies.n bigint NOT NULL
tallies.runner text COLLATE C
tallies.to_state text NOT NULL
ticks.at timestamp with time zone NOT NULL
ticks.job bigint
ticks.schedule text NOT NULL
totals.bucket integer NOT NULL
totals.event text COLLATE C NOT NULL
totals.kind text COLLATE C NOT NULL
totals.ms double precision NOT NULL
totals.n bigint NOT NULL
jobs WITH fillfactor=60
runners WITH fillfactor=50
alerts: PRIMARY KEY (id)
alerts: CHECK ((severity = ANY (ARRAY['info'::text, 'warning'::text, 'critical'::text])))
answers: PRIMARY KEY (actor, key)
api_keys: FOREIGN KEY (person) REFERENCES people(id)
api_keys: PRIMARY KEY (id)
api_keys: CHECK ((role = ANY (ARRAY['viewer'::text, 'operator'::text, 'admin'::text])))
audit: PRIMARY KEY (id)
batch_pace: PRIMARY KEY (batch, minute)
batches: UNIQUE (key)
batches: PRIMARY KEY (id)
breakers: PRIMARY KEY (name)
breakers: CHECK ((rest > (0)::double precision))
breakers: CHECK ((state = ANY (ARRAY['closed'::text, 'open'::text, 'probing'::text])))
breakers: CHECK ((threshold > 0))
budgets: CHECK ((currency = ANY (ARRAY['usd'::text, 'brl'::text])))
budgets: CHECK ((nanos > 0))
budgets: CHECK ((per = ANY (ARRAY['whole'::text, 'day'::text, 'month'::text])))
budgets: PRIMARY KEY (gate)
budgets: CHECK ((scope = ANY (ARRAY['batch'::text, 'application'::text, 'provider'::text])))
charges: CHECK ((amount > 0))
charges: PRIMARY KEY (id)
charges: CHECK ((sort = ANY (ARRAY['spent'::text, 'saved'::text])))
costs: PRIMARY KEY (scope, name, period, provider, model, unit, sort)
costs: CHECK ((scope = ANY (ARRAY['job'::text, 'batch'::text, 'kind'::text, 'application'::text, 'provider'::text, 'all'::text])))
counts: PRIMARY KEY (batch, kind, state, code)
duties: PRIMARY KEY (name)
events: PRIMARY KEY (job, seq)
evidence: PRIMARY KEY (sha256)
exchange: PRIMARY KEY (since)
filling_jobs: PRIMARY KEY (filling, slice, place)
fillings: UNIQUE (key)
fillings: PRIMARY KEY (id)
hints: PRIMARY KEY (job)
job_evidence: PRIMARY KEY (job, name, epoch)
job_evidence: FOREIGN KEY (sha256) REFERENCES evidence(sha256)
jobs: CHECK (((state = 'running'::text) = (runner IS NOT NULL)))
jobs: PRIMARY KEY (id)
jobs: CHECK ((state = ANY (ARRAY['waiting'::text, 'running'::text, 'parked'::text, 'done'::text, 'skipped'::text, 'dead'::text, 'canceled'::text])))
kinds: PRIMARY KEY (name)
knobs: PRIMARY KEY (name)
limits: CHECK ((cap >= 0))
limits: PRIMARY KEY (key)
limits: CHECK ((used >= 0))
meta: PRIMARY KEY (name)
pace: PRIMARY KEY (kind, minute, state, code, bucket)
pauses: PRIMARY KEY (scope, name)
pauses: CHECK ((scope = ANY (ARRAY['application'::text, 'kind'::text, 'queue'::text])))
people: PRIMARY KEY (id)
people: CHECK ((role = ANY (ARRAY['viewer'::text, 'operator'::text, 'admin'::text])))
places_left: PRIMARY KEY (place)
pool_items: CHECK (((job IS NULL) = (scope IS NULL)))
pool_items: PRIMARY KEY (id)
pool_items: FOREIGN KEY (pool) REFERENCES pools(name)
pool_items: UNIQUE (pool, name)
pool_items: CHECK ((scope = ANY (ARRAY['attempt'::text, 'job'::text, 'release'::text])))
pool_items: CHECK ((state = ANY (ARRAY['on'::text, 'off'::text])))
pools: CHECK ((off_after > 0))
pools: CHECK ((pick = ANY (ARRAY['random'::text, 'oldest'::text])))
pools: PRIMARY KEY (name)
pools: CHECK ((use_cap > 0))
prices: CHECK ((currency = ANY (ARRAY['usd'::text, 'brl'::text])))
prices: CHECK ((per > 0))
prices: PRIMARY KEY (provider, model, unit, since)
rates: CHECK ((adaptive = ANY (ARRAY[0, 1])))
rates: CHECK ((bound > (0)::double precision))
rates: CHECK ((burst >= (1)::double precision))
rates: PRIMARY KEY (key)
rates: CHECK ((rate > (0)::double precision))
refers: PRIMARY KEY (table_name, column_name)
refers: CHECK ((what = ANY (ARRAY['job'::text, 'batch'::text])))
retoma_migrations: PRIMARY KEY (room, number)
reuse: PRIMARY KEY (hash)
runner_kinds: PRIMARY KEY (boot, kind, event)
runner_totals: PRIMARY KEY (boot, event)
runners: PRIMARY KEY (boot)
runners: CHECK ((state = ANY (ARRAY['alive'::text, 'leaving'::text, 'gone'::text, 'lost'::text])))
schedules: PRIMARY KEY (name)
secrets: PRIMARY KEY (owner, field, "row")
sign_in_links: FOREIGN KEY (person) REFERENCES people(id)
sign_in_links: PRIMARY KEY (id)
sign_in_links: CHECK ((role = ANY (ARRAY['viewer'::text, 'operator'::text, 'admin'::text])))
sign_in_sessions: FOREIGN KEY (person) REFERENCES people(id)
sign_in_sessions: PRIMARY KEY (id)
sign_in_sessions: CHECK ((role = ANY (ARRAY['viewer'::text, 'operator'::text, 'admin'::text])))
steps: PRIMARY KEY (job, name, version, key)
steps: CHECK ((state = ANY (ARRAY['begun'::text, 'saved'::text, 'failed'::text, 'ended'::text])))
tallies: PRIMARY KEY (id)
ticks: PRIMARY KEY (schedule, at)
totals: PRIMARY KEY (kind, event, bucket)
CREATE INDEX alerts_closed ON retoma.alerts USING btree (closed_at) WHERE ((closed_told_at IS NULL) AND (closed_at IS NOT NULL))
CREATE INDEX alerts_of ON retoma.alerts USING btree (rule, subject, silenced_until) WHERE (silenced_until IS NOT NULL)
CREATE UNIQUE INDEX alerts_open ON retoma.alerts USING btree (rule, subject) WHERE (closed_at IS NULL)
CREATE UNIQUE INDEX alerts_pkey ON retoma.alerts USING btree (id)
CREATE INDEX alerts_raised ON retoma.alerts USING btree (since) WHERE (raised_told_at IS NULL)
CREATE INDEX answers_at ON retoma.answers USING btree (at)
CREATE UNIQUE INDEX answers_pkey ON retoma.answers USING btree (actor, key)
CREATE INDEX api_keys_person ON retoma.api_keys USING btree (person)
CREATE UNIQUE INDEX api_keys_pkey ON retoma.api_keys USING btree (id)
CREATE INDEX audit_at ON retoma.audit USING btree (at, id)
CREATE UNIQUE INDEX audit_pkey ON retoma.audit USING btree (id)
CREATE INDEX audit_xid ON retoma.audit USING btree (xid)
CREATE UNIQUE INDEX batch_pace_pkey ON retoma.batch_pace USING btree (batch, minute)
CREATE UNIQUE INDEX batches_key_key ON retoma.batches USING btree (key)
CREATE INDEX batches_paused ON retoma.batches USING btree (id) WHERE (paused_at IS NOT NULL)
CREATE UNIQUE INDEX batches_pkey ON retoma.batches USING btree (id)
CREATE UNIQUE INDEX breakers_pkey ON retoma.breakers USING btree (name)
CREATE INDEX budgets_of ON retoma.budgets USING btree (scope, name)
CREATE UNIQUE INDEX budgets_pkey ON retoma.budgets USING btree (gate)
CREATE UNIQUE INDEX charges_pkey ON retoma.charges USING btree (id)
CREATE UNIQUE INDEX costs_pkey ON retoma.costs USING btree (scope, name, period, provider, model, unit, sort)
CREATE UNIQUE INDEX counts_pkey ON retoma.counts USING btree (batch, kind, state, code)
CREATE UNIQUE INDEX duties_pkey ON retoma.duties USING btree (name)
CREATE INDEX events_commands ON retoma.events USING btree (at, job, seq) WHERE ((type = ANY (ARRAY['again'::text, 'unparked'::text, 'discarded'::text, 'cancel_requested'::text])) OR ((type = ANY (ARRAY['canceled'::text, 'skipped'::text])) AND (epoch IS NULL)))
CREATE UNIQUE INDEX events_pkey ON retoma.events USING btree (job, seq)
CREATE INDEX events_xid ON retoma.events USING btree (xid)
CREATE UNIQUE INDEX evidence_pkey ON retoma.evidence USING btree (sha256)
CREATE UNIQUE INDEX exchange_pkey ON retoma.exchange USING btree (since)
CREATE INDEX filling_jobs_key ON retoma.filling_jobs USING btree (kind, key) WHERE (key IS NOT NULL)
CREATE UNIQUE INDEX filling_jobs_pkey ON retoma.filling_jobs USING btree (filling, slice, place)
CREATE UNIQUE INDEX fillings_key_key ON retoma.fillings USING btree (key)
CREATE UNIQUE INDEX fillings_pkey ON retoma.fillings USING btree (id)
CREATE INDEX hints_hinted_at ON retoma.hints USING btree (hinted_at)
CREATE UNIQUE INDEX hints_pkey ON retoma.hints USING btree (job)
CREATE UNIQUE INDEX job_evidence_pkey ON retoma.job_evidence USING btree (job, name, epoch)
CREATE INDEX job_evidence_sha256 ON retoma.job_evidence USING btree (sha256)
CREATE INDEX jobs_aside ON retoma.jobs USING btree (aside, priority, turn, id) WHERE ((state = 'waiting'::text) AND (aside IS NOT NULL))
CREATE INDEX jobs_batch ON retoma.jobs USING btree (batch, state, id) WHERE ((batch IS NOT NULL) AND (state = ANY (ARRAY['parked'::text, 'skipped'::text, 'dead'::text, 'canceled'::text])))
CREATE INDEX jobs_dead ON retoma.jobs USING btree (id) WHERE ((state = 'dead'::text) AND (discarded_at IS NULL))
CREATE INDEX jobs_done ON retoma.jobs USING btree (kind, id) WHERE (state = 'done'::text)
CREATE INDEX jobs_ends ON retoma.jobs USING btree (kind, state, id) WHERE (state = ANY (ARRAY['parked'::text, 'skipped'::text, 'dead'::text, 'canceled'::text]))
CREATE INDEX jobs_held ON retoma.jobs USING btree (runner) WHERE (runner IS NOT NULL)
CREATE UNIQUE INDEX jobs_key ON retoma.jobs USING btree (kind, key) WHERE (key IS NOT NULL)
CREATE INDEX jobs_not_due ON retoma.jobs USING btree (queue, run_at) WHERE ((state = 'waiting'::text) AND (turn IS NULL))
CREATE UNIQUE INDEX jobs_pkey ON retoma.jobs USING btree (id)
CREATE INDEX jobs_suspect ON retoma.jobs USING btree (queue, priority, turn, id) WHERE ((state = 'waiting'::text) AND (turn IS NOT NULL) AND (aside IS NULL) AND (lost >= 2))
CREATE INDEX jobs_waiting ON retoma.jobs USING btree (queue, priority, turn, id) WHERE ((state = 'waiting'::text) AND (turn IS NOT NULL) AND (aside IS NULL) AND (lost < 2))
CREATE UNIQUE INDEX kinds_pkey ON retoma.kinds USING btree (name)
CREATE UNIQUE INDEX knobs_pkey ON retoma.knobs USING btree (name)
CREATE UNIQUE INDEX limits_pkey ON retoma.limits USING btree (key)
CREATE UNIQUE INDEX meta_pkey ON retoma.meta USING btree (name)
CREATE UNIQUE INDEX pace_pkey ON retoma.pace USING btree (kind, minute, state, code, bucket)
CREATE UNIQUE INDEX pauses_pkey ON retoma.pauses USING btree (scope, name)
CREATE UNIQUE INDEX people_name ON retoma.people USING btree (name) WHERE (removed_at IS NULL)
CREATE UNIQUE INDEX people_pkey ON retoma.people USING btree (id)
CREATE UNIQUE INDEX places_left_pkey ON retoma.places_left USING btree (place)
CREATE INDEX pool_items_free ON retoma.pool_items USING btree (pool, used_at) WHERE ((job IS NULL) AND (state = 'on'::text))
CREATE INDEX pool_items_held ON retoma.pool_items USING btree (job) WHERE (job IS NOT NULL)
CREATE UNIQUE INDEX pool_items_pkey ON retoma.pool_items USING btree (id)
CREATE UNIQUE INDEX pool_items_pool_name_key ON retoma.pool_items USING btree (pool, name)
CREATE UNIQUE INDEX pools_pkey ON retoma.pools USING btree (name)
CREATE UNIQUE INDEX prices_pkey ON retoma.prices USING btree (provider, model, unit, since)
CREATE UNIQUE INDEX rates_pkey ON retoma.rates USING btree (key)
CREATE UNIQUE INDEX refers_pkey ON retoma.refers USING btree (table_name, column_name)
CREATE UNIQUE INDEX retoma_migrations_pkey ON retoma.retoma_migrations USING btree (room, number)
CREATE INDEX reuse_at ON retoma.reuse USING btree (at)
CREATE INDEX reuse_of ON retoma.reuse USING btree (kind, step, at, hash)
CREATE UNIQUE INDEX reuse_pkey ON retoma.reuse USING btree (hash)
CREATE UNIQUE INDEX runner_kinds_pkey ON retoma.runner_kinds USING btree (boot, kind, event)
CREATE UNIQUE INDEX runner_totals_pkey ON retoma.runner_totals USING btree (boot, event)
CREATE INDEX runners_lease ON retoma.runners USING btree (lease_until)
CREATE INDEX runners_name ON retoma.runners USING btree (name)
CREATE UNIQUE INDEX runners_pkey ON retoma.runners USING btree (boot)
CREATE UNIQUE INDEX schedules_pkey ON retoma.schedules USING btree (name)
CREATE INDEX secrets_key ON retoma.secrets USING btree (key) WHERE (key IS NOT NULL)
CREATE UNIQUE INDEX secrets_pkey ON retoma.secrets USING btree (owner, field, "row")
CREATE INDEX sign_in_links_expires_at ON retoma.sign_in_links USING btree (expires_at)
CREATE INDEX sign_in_links_person ON retoma.sign_in_links USING btree (person)
CREATE UNIQUE INDEX sign_in_links_pkey ON retoma.sign_in_links USING btree (id)
CREATE INDEX sign_in_sessions_expires_at ON retoma.sign_in_sessions USING btree (expires_at)
CREATE INDEX sign_in_sessions_person ON retoma.sign_in_sessions USING btree (person)
CREATE UNIQUE INDEX sign_in_sessions_pkey ON retoma.sign_in_sessions USING btree (id)
CREATE UNIQUE INDEX steps_pkey ON retoma.steps USING btree (job, name, version, key)
CREATE UNIQUE INDEX tallies_pkey ON retoma.tallies USING btree (id)
CREATE UNIQUE INDEX ticks_pkey ON retoma.ticks USING btree (schedule, at)
CREATE UNIQUE INDEX totals_pkey ON retoma.totals USING btree (kind, event, bucket)
CREATE TRIGGER events_are_immutable BEFORE DELETE OR UPDATE ON retoma.events FOR EACH ROW EXECUTE FUNCTION refuse_change_of_events()
CREATE TRIGGER evidence_leaves_its_place AFTER DELETE ON retoma.evidence FOR EACH ROW WHEN ((old.place IS NOT NULL)) EXECUTE FUNCTION leave_place_of_evidence()
CREATE TRIGGER evidence_moves_in AFTER UPDATE OF place ON retoma.evidence FOR EACH ROW WHEN (((old.place IS NOT NULL) AND (new.place IS NULL))) EXECUTE FUNCTION leave_place_of_evidence()
CREATE OR REPLACE FUNCTION retoma.clock()
 RETURNS timestamp with time zone
 LANGUAGE sql
AS $function$SELECT clock_timestamp()$function$
CREATE OR REPLACE FUNCTION retoma.clock_in(seconds double precision)
 RETURNS timestamp with time zone
 LANGUAGE sql
AS $function$SELECT retoma.clock() + seconds * interval '1 second'$function$
CREATE OR REPLACE FUNCTION retoma.count_denied(line bigint, told json)
 RETURNS SETOF bigint
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'retoma', 'pg_temp'
AS $function$
UPDATE audit SET details = told
WHERE id = line AND verb = 'authz_denied' AND at > retoma.clock_in(-300)
RETURNING id
$function$
CREATE OR REPLACE FUNCTION retoma.leave_place_of_evidence()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    INSERT INTO retoma.places_left (place, at) VALUES (OLD.place, retoma.clock())
    ON CONFLICT (place) DO NOTHING;
    RETURN NULL;
END $function$
CREATE OR REPLACE FUNCTION retoma.refuse_change_of_events()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    IF TG_OP = 'DELETE' AND NOT EXISTS (SELECT FROM retoma.jobs WHERE id = OLD.job) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'events are never changed; they go when their job has gone';
END $function$
CREATE OR REPLACE FUNCTION retoma.retire_audit(bite bigint, events_before timestamp with time zone)
 RETURNS SETOF bigint
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'retoma', 'pg_temp'
AS $function$
DELETE FROM audit
WHERE id IN (SELECT id FROM audit ORDER BY id LIMIT bite) AND at < CASE
    WHEN session_user = current_user THEN events_before
    ELSE least(events_before, retoma.clock_in(-3600)) END
RETURNING id
$function$
CREATE OR REPLACE FUNCTION retoma.retire_events(retired json, events_before timestamp with time zone)
 RETURNS SETOF bigint
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'retoma', 'pg_temp'
AS $function$
DELETE FROM events
WHERE job = ANY(ARRAY(
    SELECT old.id FROM (
        SELECT CAST(job AS bigint) AS id
        FROM json_array_elements_text(retired) AS j(job)) old
    WHERE NOT EXISTS (SELECT FROM jobs WHERE id = old.id)
      AND (SELECT max(at) FROM events WHERE job = old.id) < CASE
          WHEN session_user = current_user THEN events_before
          ELSE least(events_before, retoma.clock_in(-3600)) END))
RETURNING job
$function$
attempts AS  SELECT c.job,
    c.epoch,
    c.actor AS runner,
    c.at AS claimed_at,
    e.at AS ended_at,
        CASE
            WHEN ((e.type IS NULL) OR (e.type <> 'buried'::text)) THEN e.type
            WHEN ((e.details ->> 'reason'::text) = 'poison'::text) THEN 'lost'::text
            ELSE 'failed'::text
        END AS ended,
    e.details
   FROM (events c
     LEFT JOIN events e ON (((e.job = c.job) AND (e.epoch = c.epoch) AND (e.type = ANY (ARRAY['done'::text, 'skipped'::text, 'failed'::text, 'buried'::text, 'lost'::text, 'released'::text, 'snoozed'::text, 'parked'::text, 'canceled'::text])))))
  WHERE (c.type = 'claimed'::text);
