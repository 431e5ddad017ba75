// A server of MongoDB's protocol in memory, at a port of loopback that it prints.

import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;

class Main {
    public static void main(String[] arguments) throws InterruptedException {
        MongoServer server = new MongoServer(new MemoryBackend());
        System.out.println(server.bind().getPort());
        Thread.currentThread().join();
    }
}
