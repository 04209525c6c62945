/* A compiler made of clang's and LLVM's own libraries: what `clang -cc1` does with the arguments. */
#include <clang/CodeGen/ObjectFilePCHContainerWriter.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/TextDiagnosticBuffer.h>
#include <clang/FrontendTool/Utils.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <memory>

int main(int count, char **arguments) {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmPrinters();
    llvm::InitializeAllAsmParsers();
    auto files = llvm::vfs::getRealFileSystem();
    clang::DiagnosticOptions options;
    auto diagnostics = clang::CompilerInstance::createDiagnostics(*files, options);
    auto invocation = std::make_shared<clang::CompilerInvocation>();
    if (!clang::CompilerInvocation::CreateFromArgs(
            *invocation, llvm::ArrayRef<const char *>(arguments + 1, arguments + count), *diagnostics, arguments[0]))
        return 2;
    clang::CompilerInstance compiler(invocation);
    compiler.setVirtualFileSystem(files);
    compiler.createDiagnostics();
    return clang::ExecuteCompilerInvocation(&compiler) ? 0 : 1;
}
