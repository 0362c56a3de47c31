import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;

/**
 * An application of Kafka Streams whose group is one of the streams protocol (KIP-1071). It keeps no state, so it needs no store.
 *
 * Arguments: the brokers' addresses, its id, and the topics that it reads. Each line of standard input is one of pause, resume, close; each
 * line of standard output the state of the application when it has changed. At the end of input it ends as if it were killed.
 */
public class Streaming {
    public static void main(String[] arguments) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(List.of(arguments).subList(2, arguments.length)).foreach((key, value) -> { });
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("application.id", arguments[1]);
        settings.put("client.id", "client-of-" + arguments[1]);
        settings.put("group.protocol", "streams");
        settings.put("auto.offset.reset", "earliest");
        settings.put("commit.interval.ms", 100);
        settings.put("default.key.serde", Serdes.ByteArray().getClass().getName());
        settings.put("default.value.serde", Serdes.ByteArray().getClass().getName());
        settings.put("state.dir", arguments[1] + "-state");
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setStateListener((now, before) -> System.out.println(now));
        streams.start();
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            switch (line) {
                case "pause" -> streams.pause();
                case "resume" -> streams.resume();
                default -> streams.close();
            }
            System.out.println(line);
        }
        Runtime.getRuntime().halt(0);
    }
}
