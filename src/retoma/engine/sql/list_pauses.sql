-- Everything that is paused, since when and by whom; what was paused first, first.
SELECT scope, name, since, actor, why FROM pauses ORDER BY since, scope, name;
