import java.io.File;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import org.apache.kafka.common.record.internal.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.internal.FileRecords;

/**
 * Times Kafka's own reader, FileRecords.batches(), over the headers of one segment, several rounds in one JVM.
 *
 * Arguments: headers|crc, file, rounds. Prints a line of tab-separated values a round: batches, records, bytes, wall seconds, CPU
 * seconds of the thread. The first rounds are slower: the JVM is still compiling.
 */
public class Scan {
    /** Keeps the JVM from leaving out reads whose value nobody uses. */
    private static volatile long sink;

    public static void main(String[] arguments) throws Exception {
        boolean crc = arguments[0].equals("crc");
        File file = new File(arguments[1]);
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        for (int round = 0; round < Integer.parseInt(arguments[2]); round++) {
            long cpu = threads.getCurrentThreadCpuTime();
            long wall = System.nanoTime();
            long[] sums = scan(file, crc);
            double wallSeconds = (System.nanoTime() - wall) / 1e9;
            double cpuSeconds = (threads.getCurrentThreadCpuTime() - cpu) / 1e9;
            System.out.printf("%d\t%d\t%d\t%.4f\t%.4f%n", sums[0], sums[1], sums[2], wallSeconds, cpuSeconds);
        }
    }

    private static long[] scan(File file, boolean crc) throws Exception {
        long batches = 0;
        long records = 0;
        long bytes = 0;
        long mixed = 0;
        try (FileRecords log = FileRecords.open(file, false)) {
            for (FileChannelRecordBatch batch : log.batches()) {
                batches++;
                bytes += batch.sizeInBytes();
                Integer count = batch.countOrNull();
                records += count == null ? 0 : count;
                mixed += batch.lastOffset() ^ batch.baseOffset() ^ batch.maxTimestamp() ^ batch.producerId() ^ batch.producerEpoch()
                    ^ batch.baseSequence() ^ batch.partitionLeaderEpoch();
                mixed += (batch.isTransactional() ? 1 : 0) + (batch.isControlBatch() ? 2 : 0);
                if (crc) {
                    batch.ensureValid();
                }
            }
        }
        sink = mixed;
        return new long[] {batches, records, bytes};
    }
}
