import java.io.File;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Writes one partition directory through Kafka's own UnifiedLog.appendAsLeader, one producer batch an append, as a broker does.
 *
 * Arguments: small|txn, partition directory, bytes, seed. The same seed gives the same log.
 *
 * It halts without closing the log, so the active segment keeps its preallocated index files (10 MiB, sparse), as under a live broker.
 */
public class BenchGen {
    private static final long START_MS = 1795132800000L;
    private static final int PRODUCERS_SMALL = 24;
    private static final int PRODUCERS_TXN = 60;
    /** Where in the file, as a part of it, a producer begins a transaction that it never ends. */
    private static final double[] STUCK_AT = {0.60, 0.85, 0.999};

    private final Random random;
    private final byte[] text;
    private final UnifiedLog log;
    private final RequestLocal requestLocal = RequestLocal.withThreadConfinedCaching();
    private final ByteBuffer buffer = ByteBuffer.allocate(64 << 10);
    private final long target;
    private long now = START_MS;
    private long bytes;
    private long batches;
    private long records;
    private long commits;
    private long aborts;

    private static final class Producer {
        long id;
        short epoch;
        int sequence;
        /** Markers of transaction.version 2 raise the epoch. */
        boolean bumpsEpoch;
        boolean inTransaction;
        boolean staysOpen;
        int batchesLeft;

        void sent(int count) {
            sequence += count;
        }
    }

    private BenchGen(File directory, long target, long seed) throws Exception {
        this.target = target;
        random = new Random(seed);
        text = text();
        directory.mkdirs();
        Properties properties = new Properties();
        properties.put("segment.bytes", "1073741824");
        properties.put("retention.ms", "-1");
        properties.put("message.timestamp.before.max.ms", "9223372036854775807");
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        log = UnifiedLog.create(directory, new LogConfig(properties), 0L, 0L, scheduler, new BrokerTopicStats(), Time.SYSTEM, 900000,
            new ProducerStateManagerConfig(86400000, false), 600000, new LogDirFailureChannel(1), true,
            Optional.of(new Uuid(seed, seed * 31 + 7)));
        log.assignEpochStartOffset(0, 0L);
    }

    public static void main(String[] arguments) throws Exception {
        BenchGen made = new BenchGen(new File(arguments[1]), Long.parseLong(arguments[2]), Long.parseLong(arguments[3]));
        if (arguments[0].equals("small")) {
            made.small();
        } else {
            made.transactional();
        }
        made.finish();
    }

    /** Batches of 300 to 1000 bytes without a codec, most of one record; seven of ten by an idempotent producer. */
    private void small() throws Exception {
        Producer[] producers = new Producer[PRODUCERS_SMALL];
        for (int i = 0; i < producers.length; i++) {
            producers[i] = new Producer();
            producers[i].id = 1000 + i;
        }
        while (bytes < target) {
            if (random.nextInt(4) == 0) {
                now += 1;
            }
            Producer producer = random.nextInt(10) < 7 ? producers[random.nextInt(producers.length)] : null;
            int dice = random.nextInt(20);
            int count = dice < 16 ? 1 : dice < 19 ? 2 + random.nextInt(2) : 5;
            int size = 300 + random.nextInt(701);
            int valueSize = Math.max(1, (size - 61 - count * 22) / count);
            MemoryRecordsBuilder builder = builder(Compression.NONE, producer, false);
            for (int i = 0; i < count; i++) {
                builder.append(record(valueSize));
            }
            if (producer != null) {
                producer.sent(count);
            }
            append(builder.build(), count, AppendOrigin.CLIENT, (short) 0);
            if ((batches & 4095) == 0) {
                log.updateHighWatermark(log.logEndOffset());
            }
        }
    }

    /** Batches of about 16 KB in lz4, nine of ten in transactions of one to eight batches; some transactions stay open. */
    private void transactional() throws Exception {
        List<Producer> producers = new ArrayList<>();
        for (int i = 0; i < PRODUCERS_TXN; i++) {
            Producer producer = new Producer();
            producer.id = 4000 + i;
            producer.bumpsEpoch = i % 2 == 0;
            producers.add(producer);
        }
        int stuck = 0;
        while (bytes < target) {
            now += random.nextInt(12);
            Producer producer = producers.get(random.nextInt(producers.size()));
            boolean plain = random.nextInt(10) == 0;
            if (!plain && producer.inTransaction && producer.batchesLeft == 0) {
                end(producer);
            } else {
                int goal = 16384 - 300 - random.nextInt(200);
                if (!plain && !producer.inTransaction) {
                    producer.inTransaction = true;
                    producer.batchesLeft = 1 + random.nextInt(8);
                    if (stuck < STUCK_AT.length && bytes >= (long) (target * STUCK_AT[stuck])) {
                        stuck++;
                        producer.batchesLeft = 3;
                        producer.staysOpen = true;
                    }
                }
                data(plain ? null : producer, goal, (short) (producer.bumpsEpoch ? 2 : 1));
                if (!plain && producer.staysOpen && producer.batchesLeft == 0) {
                    producers.remove(producer);
                }
            }
            if ((batches & 255) == 0) {
                log.updateHighWatermark(log.logEndOffset());
            }
        }
    }

    /** Ends the producer's transaction: nine of ten commit. */
    private void end(Producer producer) throws Exception {
        boolean commit = random.nextInt(10) != 0;
        short epoch = producer.bumpsEpoch ? (short) (producer.epoch + 1) : producer.epoch;
        EndTransactionMarker marker = new EndTransactionMarker(commit ? ControlRecordType.COMMIT : ControlRecordType.ABORT, 0);
        MemoryRecords control = MemoryRecords.withEndTransactionMarker(0L, now, 0, producer.id, epoch, marker);
        append(control, 1, AppendOrigin.COORDINATOR, (short) (producer.bumpsEpoch ? 2 : 1));
        if (commit) {
            commits++;
        } else {
            aborts++;
        }
        producer.inTransaction = false;
        if (producer.bumpsEpoch) {
            producer.epoch = epoch;
            producer.sequence = 0;
        }
    }

    /** One data batch, filled as a producer does: until its estimated compressed size reaches the goal. */
    private void data(Producer producer, int goal, short transactionVersion) throws Exception {
        MemoryRecordsBuilder builder = builder(Compression.lz4().build(), producer, true);
        int uncompressed = 0;
        int count = 0;
        while (uncompressed < (int) (goal * 1.74) - 300) {
            int size = 200 + random.nextInt(400);
            builder.append(record(size));
            uncompressed += size + 30;
            count++;
        }
        if (producer != null) {
            producer.sent(count);
            producer.batchesLeft--;
        }
        append(builder.build(), count, AppendOrigin.CLIENT, transactionVersion);
    }

    private MemoryRecordsBuilder builder(Compression codec, Producer producer, boolean transactional) {
        buffer.clear();
        if (producer == null) {
            return MemoryRecords.builder(buffer, RecordBatch.CURRENT_MAGIC_VALUE, codec, TimestampType.CREATE_TIME, 0L);
        }
        return MemoryRecords.builder(buffer, RecordBatch.CURRENT_MAGIC_VALUE, codec, TimestampType.CREATE_TIME, 0L, now, producer.id,
            producer.epoch, producer.sequence, transactional, false, RecordBatch.NO_PARTITION_LEADER_EPOCH);
    }

    private void append(MemoryRecords batch, int count, AppendOrigin origin, short transactionVersion) throws Exception {
        bytes += batch.sizeInBytes();
        records += count;
        batches++;
        log.appendAsLeader(batch, 0, origin, requestLocal, VerificationGuard.SENTINEL, transactionVersion);
    }

    private SimpleRecord record(int valueSize) {
        byte[] key = new byte[8 + random.nextInt(9)];
        for (int i = 0; i < key.length; i++) {
            key[i] = (byte) ('a' + random.nextInt(26));
        }
        byte[] value = new byte[valueSize];
        System.arraycopy(text, random.nextInt(text.length - valueSize), value, 0, valueSize);
        return new SimpleRecord(now, key, value);
    }

    /** Text like JSON, which lz4 shrinks to about a half. */
    private byte[] text() {
        String[] words = {"order", "payment", "customer", "shipped", "pending", "status", "warehouse", "eu-west", "us-east", "total"};
        StringBuilder made = new StringBuilder();
        while (made.length() < (8 << 20)) {
            made.append("{\"id\":").append(random.nextInt(1 << 30))
                .append(",\"type\":\"").append(words[random.nextInt(words.length)])
                .append("\",\"v\":").append(Long.toHexString(random.nextLong()))
                .append(",\"u\":\"").append(words[random.nextInt(words.length)]).append(random.nextInt(100000))
                .append("\"}");
        }
        return made.toString().getBytes(StandardCharsets.US_ASCII);
    }

    private void finish() throws Exception {
        log.updateHighWatermark(log.logEndOffset());
        log.flush(false);
        System.out.printf("batches=%d records=%d bytes=%d commits=%d aborts=%d leo=%d lso=%d%n",
            batches, records, bytes, commits, aborts, log.logEndOffset(), log.lastStableOffset());
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}
