// Loads the files beside it into an empty Kùzu database (0.11): run it where they are, in their folder.
CREATE NODE TABLE Node(id STRING PRIMARY KEY, kind STRING, label STRING, type STRING, mentions INT64, text STRING, aliases STRING, document STRING, ordinal INT64, `by` STRING, properties STRING);
COPY Node FROM 'nodes.csv' (HEADER=true, PARALLEL=false, AUTO_DETECT=false, DELIM=',', QUOTE='"', ESCAPE='"');
CREATE REL TABLE Edge(FROM Node TO Node, id STRING, kind STRING, label STRING, weight DOUBLE, count INT64, note STRING, chunks STRING, `by` STRING, properties STRING);
COPY Edge FROM 'edges.csv' (HEADER=true, PARALLEL=false, AUTO_DETECT=false, DELIM=',', QUOTE='"', ESCAPE='"');
