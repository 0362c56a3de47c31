import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.TopicPartition;

/**
 * Kafka's own Java clients, driven by a test: each line of standard input is a request in JSON, each line of standard output its answer.
 *
 * Argument: the brokers' addresses. A request names what to do in "do"; the answer is {"answer": ...} or {"error": "..."}. At the end of
 * input the process ends at once, as if it were killed: transactions stay open, and members leave no group.
 */
public class Lab {
    static final ObjectMapper JSON = new ObjectMapper();

    interface Task {
        Object run(JsonNode request) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        Map<String, Task> tasks = tasks(arguments[0]);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            answers.println(JSON.writeValueAsString(answer(tasks, JSON.readTree(line))));
        }
        Runtime.getRuntime().halt(0);
    }

    private static ObjectNode answer(Map<String, Task> tasks, JsonNode request) {
        ObjectNode answer = JSON.createObjectNode();
        try {
            answer.set("answer", JSON.valueToTree(tasks.get(request.get("do").asText()).run(request)));
        } catch (Exception failure) {
            Throwable cause = failure;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            answer.put("error", cause.toString());
        }
        return answer;
    }

    private static Map<String, Task> tasks(String brokers) {
        Admin admin = Admin.create(Map.of("bootstrap.servers", brokers));
        Writing writing = new Writing(brokers);
        Committing committing = new Committing(brokers, admin);
        Telling telling = new Telling(admin);
        Consuming consuming = new Consuming(brokers);
        Map<String, Task> tasks = new HashMap<>();
        tasks.put("produce", writing::produce);
        tasks.put("begin", writing::begin);
        tasks.put("commit_in_transaction", writing::commit);
        tasks.put("end", writing::end);
        tasks.put("commit", committing::commit);
        tasks.put("leave", committing::leave);
        tasks.put("share", committing::share);
        tasks.put("commits", request -> telling.commits());
        tasks.put("groups", request -> telling.groups());
        tasks.put("ends", request -> telling.ends());
        tasks.put("consume", consuming::consume);
        return tasks;
    }

    /** From the two first elements of an array. */
    static TopicPartition partition(JsonNode row) {
        return new TopicPartition(row.get(0).asText(), row.get(1).asInt());
    }
}
