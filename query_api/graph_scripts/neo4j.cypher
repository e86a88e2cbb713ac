// Loads nodes.csv and edges.csv into Neo4j 5: put both into its import folder, set
// server.config dbms.import.csv.legacy_quote_escaping=false (a backslash in a text is a backslash), and run
// cypher-shell -f neo4j.cypher
CREATE CONSTRAINT node_id IF NOT EXISTS FOR (node:Node) REQUIRE node.id IS UNIQUE;
:auto LOAD CSV WITH HEADERS FROM 'file:///nodes.csv' AS row
CALL {
  WITH row
  MERGE (node:Node {id: row.id})
  SET node += row {.kind, .label, .type, .text, .aliases, .document, .by, .properties,
                   mentions: toInteger(row.mentions), ordinal: toInteger(row.ordinal)}
} IN TRANSACTIONS OF 10000 ROWS;
:auto LOAD CSV WITH HEADERS FROM 'file:///edges.csv' AS row
CALL {
  WITH row
  MATCH (source:Node {id: row.source}), (target:Node {id: row.target})
  CREATE (source)-[edge:Edge]->(target)
  SET edge += row {.id, .kind, .label, .note, .chunks, .by, .properties,
                   weight: toFloat(row.weight), count: toInteger(row.count)}
} IN TRANSACTIONS OF 10000 ROWS;
