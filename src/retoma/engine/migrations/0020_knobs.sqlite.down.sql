-- Every knob is at its default; whoever set one is told so no more.
DROP TABLE knobs;
