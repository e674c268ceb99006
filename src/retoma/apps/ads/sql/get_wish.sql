-- Whether the orchestrator is to work.
SELECT wish FROM ads_orchestrator;
