// Reads a JSON list of Mermaid texts from standard input; prints what Mermaid makes of each, a line of JSON.
import { JSDOM } from "jsdom";

globalThis.window = new JSDOM("").window;
globalThis.document = window.document;
const { default: mermaid } = await import("mermaid");

let input = "";
for await (const part of process.stdin) input += part;
for (const text of JSON.parse(input)) {
  try {
    await mermaid.parse(text);
    const { db } = await mermaid.mermaidAPI.getDiagramFromText(text);
    const nodes = [...db.getVertices().values()];
    const config = mermaid.mermaidAPI.getConfig();
    console.log(
      JSON.stringify({
        nodes: nodes.map((node) => [node.id, node.text]),
        edges: db.getEdges().map((edge) => [edge.start, edge.text, edge.end]),
        beyond: nodes.filter((node) => node.link || node.haveCallback || node.classes.length || node.styles.length),
        groups: db.getSubGraphs().length,
        security: config.securityLevel,
      }),
    );
  } catch (error) {
    console.log(JSON.stringify({ error: error.message }));
  }
}
