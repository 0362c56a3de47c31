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

/** As `Lab`, for groups and logs that move: a program of its own, so that recordings that were made with that one stay as they are. */
public class Moving {
    interface Task {
        Object run(JsonNode request) throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]));
        Answering answering = new Answering(admin);
        Working working = new Working(arguments[0], admin);
        Map<String, Task> tasks = new HashMap<>(Map.of(
            "commits_of", answering::commitsOf, "share", working::share, "forget", working::forget,
            "delete", working::delete, "reset", working::reset, "move", working::move));
        tasks.putAll(Map.of(
            "ends_of", answering::endsOf, "create", working::create, "remove", working::remove, "expand", working::expand,
            "truncate", working::truncate, "rehouse", working::rehouse));
        ObjectMapper json = new ObjectMapper();
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            ObjectNode answer = json.createObjectNode();
            JsonNode request = json.readTree(line);
            try {
                answer.set("answer", json.valueToTree(tasks.get(request.get("do").asText()).run(request)));
            } catch (Exception failure) {
                answer.put("error", failure.toString());
            }
            answers.println(json.writeValueAsString(answer));
        }
        Runtime.getRuntime().halt(0);
    }
}
