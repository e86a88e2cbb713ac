"""The agents of a worker, and what is done to its documents between their commits."""

import asyncio
from collections.abc import Callable
from functools import partial

import faust

from indexer.embedding.encoder import PromptedEncoder
from indexer.extraction.mention_tagger import tag_with
from indexer.graph.store import order_remake
from kafka_client.partitioner import murmur2_partition
from schemas.orders import RELINK, REPAIR, REPLAY, OrderKind
from streams.agents.batching import (
    BATCH_RECORDS,
    BATCH_WAIT_SECONDS,
    GATHER_SECONDS,
    LATER_BATCH_WAIT_SECONDS,
    CommitPace,
    attach_agent,
)
from streams.agents.documents_agent import COMMIT_BYTES, COMMIT_DOCUMENTS, DocumentsAgent
from streams.agents.graph_agent import GRAPH_BATCH_RECORDS, GraphAgent
from streams.agents.provenance_agent import ProvenanceAgent
from streams.faust_app import group_name, instance_name
from streams.indexing.batch import DocumentsTopic
from streams.indexing.commit import DocumentIndexer
from streams.indexing.embed import DocumentBuilder, EncoderThread
from streams.indexing.extract import open_extractors, versions_of
from streams.indexing.missed_deletes import AWAY_TOO_LONG, MissedDeletes
from streams.indexing.order_runner import OrderRunner, Work, relink, repair, replay
from streams.indexing.prepare import Parsers, Preparer
from streams.indexing.reapply import Reapplier
from streams.indexing.settings_reader import CollectionChoices, CollectionSettings
from streams.kafka.mapped_topics import MappedTopics
from streams.kafka.partition_reader import AWAY, SettingsTopic
from streams.kafka.producer import ConfirmedProducer
from streams.kafka.topics import TopicReport
from streams.runtime.retry import Retrier
from streams.runtime.snapshot_schedule import Snapshots
from streams.worker_runtime import OpenStores, WorkerRuntime


async def attach_agents(
    runtime: WorkerRuntime,
    app: faust.App,
    documents: TopicReport,
    stores: OpenStores,
    snapshots: Snapshots,
    parsers: Parsers,
    encoder: PromptedEncoder,
) -> DocumentIndexer:
    """Attach them to the app, which runs them, and start the rest; what commits the documents."""
    names, generation = runtime.names, stores.generation
    metrics, progress = runtime.metrics, runtime.progress
    kafka = runtime.retrier("kafka", *AWAY)
    is_new = runtime.role.is_new_letter(generation, names.documents)
    producer = ConfirmedProducer(app.producer, names, generation.name, metrics, progress, is_new=is_new)
    settings = _collection_settings(runtime, producer, kafka)
    partition_of = murmur2_partition(documents.partitions)
    indexer = DocumentIndexer(
        topic=DocumentsTopic(names.documents, generation.name, partition_of),
        limits=runtime.settings.limits,
        writer=stores.vectors,
        thread=stores.lance,
        builder=_builder(runtime, parsers, encoder, stores, settings),
        producer=producer,
        metrics=metrics,
        collection_settings=settings,
        reached=dict(stores.reached),
        commit_lock=runtime.commit_lock,
    )
    readers = [runtime.partition_reader(names.documents, number) for number in range(documents.partitions)]
    missed_deletes = MissedDeletes(
        partial(runtime.partition_reader, names.documents),
        stores.vectors,
        stores.lance,
        indexer,
        kafka,
        runtime.commit_lock,
        generation.missed_deletes_path,
    )
    await missed_deletes.find(stores.reached, documents.delete_retention_ms)
    if missed_deletes.were_found:
        runtime.health.note_for_good(AWAY_TOO_LONG)
    runtime.run(missed_deletes.delete())
    reapplier = Reapplier(readers, indexer, stores, snapshots.make, runtime.commit_lock)
    work: dict[OrderKind, Work] = {
        RELINK: partial(relink, reapplier, partial(stores.lance.run, stores.vectors.live_positions)),
        REPAIR: partial(repair, reapplier, partial(order_remake, generation)),
        REPLAY: partial(replay, reapplier),
    }
    orders = OrderRunner(generation.name, settings, work, producer, kafka, runtime.commit_lock)

    async def complete_graph() -> None:
        """Where the graph lacks documents, make them again and publish it; orders, which compare with the graph, begin
        afterwards."""
        if not stores.graph.is_complete:
            await kafka.retry_forever(reapplier.complete_graph)
            stores.graph.complete()
            snapshots.schedule.changed()
            await snapshots.make()
        if runtime.role.build is None:  # all that is built is linked by the current rules
            runtime.run(*(loop() for loop in orders.loops()))

    runtime.run(complete_graph())
    if runtime.role.build is None and runtime.settings.ingest.mappings:
        runtime.run(_mapped_topics(runtime, producer, partition_of, kafka).run())

    contributions = names.contributions(generation.name)
    pace = CommitPace(GATHER_SECONDS)
    documents_agent = DocumentsAgent(names.documents, indexer, progress, COMMIT_DOCUMENTS, COMMIT_BYTES, pace)
    graph_agent = GraphAgent(contributions, stores.graph, stores.graph_thread, producer, snapshots, progress, metrics)
    provenance_agent = ProvenanceAgent(names.provenance, stores.vectors, stores.lance, producer, progress)
    attach = partial(attach_agent, app, fail=runtime.fail)
    quick, slow = BATCH_WAIT_SECONDS, LATER_BATCH_WAIT_SECONDS
    attach("documents", names.documents, documents_agent.run, BATCH_RECORDS, quick, pause=pace.wait)
    attach("graph", contributions, graph_agent.run, GRAPH_BATCH_RECORDS, slow)
    attach("provenance", names.provenance, provenance_agent.run, BATCH_RECORDS, slow)
    return indexer


def _collection_settings(runtime: WorkerRuntime, producer: ConfirmedProducer, kafka: Retrier) -> CollectionSettings:
    settings = runtime.settings
    group = group_name(settings.kafka.topic_prefix, "settings")  # shared by all generations
    topic = SettingsTopic(settings.kafka, runtime.names.curation, group, runtime.skipped, runtime.progress.unreadable)
    runtime.cleanup.push_async_callback(topic.close)
    choices = CollectionChoices(runtime.role.chunking, versions_of(settings))
    return CollectionSettings(runtime.names.curation, topic, producer, choices, kafka)


def _mapped_topics(
    runtime: WorkerRuntime, producer: ConfirmedProducer, partition_of: Callable[[bytes], int], kafka: Retrier
) -> MappedTopics:
    settings = runtime.settings
    return MappedTopics(
        settings.kafka,
        group_name(settings.kafka.topic_prefix, "mapped-topics"),  # shared by all generations
        instance_name(settings.storage.data_dir, len(settings.ingest.mappings)),
        settings.ingest.mappings,
        partition_of,
        producer,
        kafka,
        runtime.progress,
        runtime.skipped.includes,
    )


def _builder(
    runtime: WorkerRuntime,
    parsers: Parsers,
    encoder: PromptedEncoder,
    stores: OpenStores,
    settings: CollectionSettings,
) -> DocumentBuilder:
    encoding = EncoderThread(encoder, runtime.metrics, runtime.progress, tag=tag_with(encoder))
    runtime.cleanup.push_async_callback(asyncio.to_thread, encoding.close)
    extractors = open_extractors(runtime.settings, runtime.metrics, runtime.progress)
    for each in extractors.values():
        runtime.cleanup.callback(each.close)
    return DocumentBuilder(
        Preparer(parsers, encoding, runtime.role.chunking).prepare,
        encoding,
        stores.lance,
        runtime.role.vectors(stores.generation, stores.vectors),
        linking_of=settings.linking_of,
        extractors=extractors,
    )
