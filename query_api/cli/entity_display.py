"""How entities, and what documents say of them, look on a terminal."""

from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape
from rich.text import Text
from rich.tree import Tree

from query_api.cli.display import JSONObject, plain_text
from schemas.terminal import plain

MAX_SHOWN_PREDICATES = 3


def show_list(console: Console, answer: JSONObject) -> None:
    if not answer["entities"]:
        console.print("There are no such entities.")
    for entity in answer["entities"]:
        console.print(escape(_line(entity)))
    if answer["next_cursor"]:
        console.print(f"There are more: --cursor {answer['next_cursor']}")


def show_one(console: Console, answer: JSONObject) -> None:
    """Name, type and definition, then what is known of it, by kind; a statement stands above its sentence."""
    heading = Text.assemble(
        (plain(answer["label"]), "bold"), plain(f" ({answer['type']})"), (f"  {answer['id']}", "dim")
    )
    tree = Tree(heading)
    tree.add(Text(f"{answer['mentions']:,} mentions in {plain(answer['collection'])}", style="dim"))
    if answer["definition"]:
        definition = answer["definition"]
        tree.add(Text(plain(f"{definition['text']} [{definition['source']['document_id']}]"), style="italic"))
    others = [alias["surface"] for alias in answer["aliases"] if alias["surface"] != answer["label"]]
    if others:
        tree.add(plain_text(f"also written {', '.join(others)}"))
    _add_facts(tree, "statements", answer["statements"])
    _add_facts(tree, "no longer stated", answer["withdrawn"] or [])
    for name, lines in (
        ("documents", map(_document, answer["documents"])),
        ("neighbours", map(_neighbour, answer["neighbours"])),
        ("in the same documents, never in one chunk", map(_consolidated, answer["consolidated"])),
    ):
        if found := list(lines):
            branch = tree.add(Text(name, style="bold cyan"))
            for line in found:
                branch.add(plain_text(line))
    if answer.get("truncated"):
        tree.add(Text("There is more: --limit shows it.", style="dim"))
    console.print(tree, highlight=False, soft_wrap=not console.is_terminal)


def _add_facts(tree: Tree, name: str, statements: list[JSONObject]) -> None:
    if not statements:
        return
    branch = tree.add(Text(name, style="bold cyan"))
    for each in statements:
        fact = branch.add(plain_text(_fact(each)))
        for sentence in _evidence(each["evidence"][:1]):
            fact.add(Text(plain(sentence), style="dim"))


def _line(entity: JSONObject) -> str:
    return (
        f"{entity['id']}  {entity['collection']}  {entity['label']} ({entity['type']}), {entity['mentions']} mentions"
    )


def _document(document: JSONObject) -> str:
    about = ", about it" if document["about"] else ""
    return f"{document['document_id']}: {document['title']} ({document['mentions']} mentions{about})"


def _neighbour(neighbour: JSONObject) -> str:
    joined = ", ".join(neighbour["predicates"][:MAX_SHOWN_PREDICATES]) or f"{neighbour['shared_chunks']} chunks"
    return f"{neighbour['entity']['label']} ({joined})"


def _consolidated(related: JSONObject) -> str:
    noun = "document" if related["documents"] == 1 else "documents"
    return f"{related['entity']['label']} (in {related['documents']} {noun})"


def _fact(statement: JSONObject) -> str:
    further = "".join(f", {part['role']} {part['entity']['label']}" for part in statement["further"])
    fact = f"{statement['subject']['label']} ─{statement['predicate']}→ {statement['object']['label']}"
    return f"{fact}{further} ({statement['strength']:.2g}{', by people' if statement['by_people'] else ''})"


def _evidence(evidence: list[JSONObject]) -> Iterator[str]:
    for each in evidence:
        yield f"{each['sentence'] or each['title']} [{each['collection']}/{each['document_id']}]"
