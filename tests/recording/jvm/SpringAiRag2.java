package app;

import org.springframework.ai.chat.client.advisor.api.Advisor;
import org.springframework.ai.rag.advisor.RetrievalAugmentationAdvisor;
import org.springframework.ai.rag.retrieval.search.VectorStoreDocumentRetriever;
import org.springframework.ai.vectorstore.VectorStore;

/** The same with spring-ai-rag; goes in the place of SpringAiRag.java. */
final class SpringAiRag {
    static Advisor over(VectorStore store) {
        return RetrievalAugmentationAdvisor.builder().documentRetriever(VectorStoreDocumentRetriever.builder().vectorStore(store).topK(2).build()).build();
    }
}
